package bmcsim

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// slot is what is in one virtual drive.
type slot struct {
	Image    string `json:"image,omitempty"`
	Inserted bool   `json:"inserted,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// inserted is the image in the first optical drive that has one, or in the first
// other drive.
func (h *Host) inserted(optical bool) string {
	for i, m := range h.shape.media {
		if m.optical() == optical && h.media[i].Inserted {
			return h.media[i].Image
		}
	}
	return ""
}

// hasMedia tells whether virtual media is shown in the part of the service that
// was asked.
func (c *call) hasMedia() bool {
	return c.host.shape.systemMedia == strings.HasPrefix(c.path, "Systems/")
}

func getMediaCollection(c *call) answer {
	if !c.hasMedia() {
		return missing(root + "/" + c.path)
	}
	var ids []string
	for _, m := range c.host.shape.media {
		ids = append(ids, m.id)
	}
	return c.collection("VirtualMedia", "Virtual Media Services", ids...)
}

// drive finds the virtual drive that was asked for; -1 if there is none.
func (c *call) drive() int {
	if !c.hasMedia() {
		return -1
	}
	return slices.IndexFunc(c.host.shape.media, func(m mediaShape) bool { return m.id == c.id(1) })
}

func getMedia(c *call) answer {
	i := c.drive()
	if i < 0 {
		return missing(root + "/" + c.path)
	}
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	m, s := c.host.shape.media[i], c.host.media[i]
	b := c.resource("VirtualMedia.v1_4_0.VirtualMedia", m.id, m.name)
	b["MediaTypes"], b["Inserted"], b["Image"], b["ImageName"], b["ConnectedVia"] = m.types, s.Inserted, nil, nil, "NotConnected"
	if s.Inserted {
		b["Image"], b["ImageName"], b["ConnectedVia"] = s.Image, s.Image[strings.LastIndex(s.Image, "/")+1:], "URI"
	}
	if !c.host.shape.bareInsert {
		b["WriteProtected"] = s.ReadOnly
	}
	base := strings.Split(c.path, "/")
	act := func(name string) obj {
		return obj{"target": c.at(append(slices.Clip(base), "Actions", "VirtualMedia."+name)...)}
	}
	b["Actions"] = obj{"#VirtualMedia.InsertMedia": act("InsertMedia"), "#VirtualMedia.EjectMedia": act("EjectMedia")}
	return ok(b)
}

type insertion struct {
	Image          string
	Inserted       *bool
	WriteProtected *bool
}

func postInsert(c *call) answer {
	i := c.drive()
	if i < 0 {
		return missing(root + "/" + c.path)
	}
	var in insertion
	if a, readable := c.body(&in); !readable {
		return a
	}
	c.note("InsertMedia", map[string]string{"Device": c.host.shape.media[i].id, "Image": v1alpha1.WithoutLogin(in.Image)})
	if a, bad := c.checkInsertion(in); bad {
		return a
	}
	if err := c.sim.fetchImage(c.r.Context(), in.Image); err != "" {
		return refuse(http.StatusBadRequest, "ResourceAtUriUnauthorized", "While accessing the resource at "+v1alpha1.WithoutLogin(in.Image)+", the service received an error: "+err)
	}
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	if c.host.media[i].Inserted {
		return refuse(http.StatusBadRequest, "ResourceInUse", "The change could not be made because a virtual media image is already inserted: eject it first.")
	}
	c.host.media[i] = slot{Image: v1alpha1.WithoutLogin(in.Image), Inserted: in.Inserted == nil || *in.Inserted, ReadOnly: in.WriteProtected == nil || *in.WriteProtected}
	c.host.touch()
	return done()
}

func (c *call) checkInsertion(in insertion) (answer, bool) {
	u, err := url.Parse(in.Image)
	switch {
	case c.host.Faults().RefuseMedia:
		return refuse(http.StatusBadRequest, "ActionParameterValueFormatError", "The image "+v1alpha1.WithoutLogin(in.Image)+" is refused.", v1alpha1.WithoutLogin(in.Image), "Image", "InsertMedia"), true
	case in.Image == "":
		return refuse(http.StatusBadRequest, "ActionParameterMissing", "The action InsertMedia requires the parameter Image.", "InsertMedia", "Image"), true
	case err != nil || !slices.Contains([]string{"http", "https", "nfs", "cifs"}, u.Scheme):
		return refuse(http.StatusBadRequest, "ActionParameterValueFormatError", "The value of the parameter Image is no address that the service can read.", "Image"), true
	case c.host.shape.bareInsert && (in.Inserted != nil || in.WriteProtected != nil):
		return refuse(http.StatusBadRequest, "ActionParameterUnknown", "The action InsertMedia was submitted with the invalid parameter Inserted or WriteProtected.", "InsertMedia", "Inserted"), true
	default:
		return answer{}, false
	}
}

// fetchImage asks for an image if the simulator was told to; it gives what is
// wrong with it, or nothing.
func (s *Sim) fetchImage(ctx context.Context, address string) string {
	if s.cfg.Images == nil {
		return ""
	}
	wrong := ""
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		req, err := http.NewRequestWithContext(ctx, method, address, nil)
		if err != nil {
			return "no such address"
		}
		resp, err := s.cfg.Images.Do(req)
		if err != nil {
			return "no answer"
		}
		_ = resp.Body.Close() // nothing of it was wanted but its status
		if resp.StatusCode == http.StatusOK {
			return ""
		}
		wrong = resp.Status
	}
	return wrong
}

func postEject(c *call) answer {
	i := c.drive()
	if i < 0 {
		return missing(root + "/" + c.path)
	}
	c.note("EjectMedia", map[string]string{"Device": c.host.shape.media[i].id})
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	if s := c.host.shape.alreadyStatus; !c.host.media[i].Inserted && s != http.StatusNoContent {
		return refuse(s, "InvalidOperationForSystemState", "There is no virtual media to eject.")
	}
	c.host.media[i] = slot{}
	c.host.touch()
	return done()
}
