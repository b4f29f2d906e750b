package bmc

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Drive is a virtual drive of a machine.
type Drive struct {
	// Path of the drive in the service.
	Path string
	// Types of media that it takes, in Redfish's words: CD, DVD, USBStick, Floppy.
	Types []string
	// Image that is inserted; empty if none is, or if the BMC does not say.
	Image string
	// Inserted says whether something is.
	Inserted bool

	insert, eject string
	bare          bool // takes the image's address and nothing else
}

func (d Drive) optical() bool {
	return slices.Contains(d.Types, "CD") || slices.Contains(d.Types, "DVD")
}

type driveBody struct {
	ID         string `json:"@odata.id"`
	MediaTypes []string
	Image      string
	Inserted   *bool // some BMCs leave it out, and WriteProtected
	Protected  *bool `json:"WriteProtected"`
	Actions    struct {
		Insert struct{ Target string } `json:"#VirtualMedia.InsertMedia"`
		Eject  struct{ Target string } `json:"#VirtualMedia.EjectMedia"`
	}
}

func (b driveBody) drive() Drive {
	return Drive{
		Path: strings.TrimRight(pathOf(b.ID), "/"), Types: b.MediaTypes, Image: v1alpha1.WithoutLogin(b.Image), Inserted: b.Inserted != nil && *b.Inserted || b.Inserted == nil && b.Image != "",
		insert: pathOf(b.Actions.Insert.Target), eject: pathOf(b.Actions.Eject.Target), bare: b.Protected == nil,
	}
}

// Drives are the virtual drives of the machine.
func (b *BMC) Drives(ctx context.Context) ([]Drive, error) {
	var out []Drive
	err := b.converse(ctx, "read the virtual drives", func(t *talk) error {
		s, err := t.known()
		if err != nil {
			return err
		}
		out, err = t.drives(s, func(Drive) bool { return false })
		return err
	})
	return out, err
}

// InsertMedia puts an image into the virtual CD drive, in place of one that is there.
// The BMC fetches it from the address, so the BMC must reach that. The same image
// twice is no error and changes nothing.
func (b *BMC) InsertMedia(ctx context.Context, image string) error {
	return b.converse(ctx, "insert "+scrub(image), func(t *talk) error {
		s, err := t.known()
		if err != nil {
			return err
		}
		d, err := t.opticalDrive(s)
		if err != nil {
			return err
		}
		if d.Inserted && d.Image == v1alpha1.WithoutLogin(image) {
			return nil
		}
		if d.Inserted {
			if err := t.ejectFrom(d); err != nil {
				return err
			}
		}
		return t.insertInto(d, image)
	})
}

// EjectMedia empties the virtual CD drive. An empty one is no error.
func (b *BMC) EjectMedia(ctx context.Context) error {
	return b.converse(ctx, "eject the virtual CD", func(t *talk) error {
		s, err := t.known()
		if err != nil {
			return err
		}
		d, err := t.opticalDrive(s)
		if err != nil || !d.Inserted {
			return err
		}
		return t.ejectFrom(d)
	})
}

func (t *talk) ejectFrom(d Drive) error {
	return t.change(http.MethodPost, d.eject, struct{}{}, nil)
}

// insertion is the body of InsertMedia.
type insertion struct {
	Image          string
	Inserted       bool   `json:",omitempty"`
	WriteProtected bool   `json:",omitempty"`
	Protocol       string `json:"TransferProtocolType,omitempty"`
}

// insertInto says as much as the BMC takes. Some (Supermicro's X11) refuse Inserted
// and WriteProtected, which shows in what they say of the drive or only in a refusal;
// some want the protocol said apart from the address. A refusal means that nothing
// was inserted, so asking again is safe.
func (t *talk) insertInto(d Drive, image string) error {
	err := t.change(http.MethodPost, d.insert, insertion{Image: image, Inserted: !d.bare, WriteProtected: !d.bare}, nil)
	e, refused := refusedByBMC(err, http.StatusBadRequest)
	if !refused {
		return err
	}
	if e.protocol {
		scheme, _, _ := strings.Cut(image, "://")
		return t.change(http.MethodPost, d.insert, insertion{Image: image, Protocol: strings.ToUpper(scheme)}, nil)
	}
	if d.bare {
		return err
	}
	return t.change(http.MethodPost, d.insert, insertion{Image: image}, nil)
}

// opticalDrive reads the virtual CD drive: where it was the last time, or wherever it
// is.
func (t *talk) opticalDrive(s *system) (Drive, error) {
	if s.drive != "" {
		var b driveBody
		found, _, err := t.get(s.drive, &b)
		if err != nil {
			return Drive{}, err
		}
		if d := b.drive(); found && d.insert != "" {
			return d, nil
		}
	}
	drives, err := t.drives(s, Drive.optical)
	if err != nil {
		return Drive{}, err
	}
	i := slices.IndexFunc(drives, func(d Drive) bool { return d.optical() && d.insert != "" && d.eject != "" })
	if i < 0 {
		return Drive{}, t.fail(&Error{
			Reason: ErrRefused, Detail: "the BMC has no virtual CD drive that takes an address",
			Advice: "check the BMC's licence and firmware, or use an address of another kind, such as redfish or ipmi, that boots over the network",
		})
	}
	s.drive = drives[i].Path
	t.remember(s.path, s)
	return drives[i], nil
}

// drives reads the virtual drives, up to the one that is enough. They belong to the
// system or to its manager, and the manager may keep them in a place of its own.
func (t *talk) drives(s *system, enough func(Drive) bool) ([]Drive, error) {
	for _, home := range s.media {
		drives, err := t.drivesAt(home, enough)
		if err != nil || len(drives) > 0 {
			return drives, err
		}
	}
	if s.manager == "" {
		return nil, nil
	}
	var m struct{ VirtualMedia link }
	if _, _, err := t.get(s.manager, &m); err != nil {
		return nil, err
	}
	home := pathOf(m.VirtualMedia.ID)
	if home == "" || slices.Contains(s.media, strings.TrimRight(home, "/")) {
		return nil, nil
	}
	return t.drivesAt(home, enough)
}

func (t *talk) drivesAt(home string, enough func(Drive) bool) ([]Drive, error) {
	var page collectionBody
	if _, err := t.expanded(home, 1, &page); err != nil {
		return nil, err
	}
	slices.SortStableFunc(page.Members, func(a, b json.RawMessage) int { return discFirst(a) - discFirst(b) })
	var out []Drive
	for i := range page.Members {
		one, err := t.whole(page.Members[i : i+1])
		if err != nil {
			return nil, err
		}
		var b driveBody
		if len(one) == 0 || json.Unmarshal(one[0], &b) != nil {
			continue
		}
		d := b.drive()
		if out = append(out, d); enough(d) {
			break
		}
	}
	return out, nil
}

// discFirst sorts links that look like those of CD drives to the front, since links
// are followed one by one.
func discFirst(m json.RawMessage) int {
	var l link
	_ = json.Unmarshal(m, &l) // what is no link goes to the end
	id := strings.ToUpper(l.ID[strings.LastIndexByte(strings.TrimRight(l.ID, "/"), '/')+1:])
	if strings.Contains(id, "CD") || strings.Contains(id, "DVD") {
		return 0
	}
	return 1
}
