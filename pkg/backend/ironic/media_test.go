package ironic_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const dataImage = "http://192.0.2.80/data.iso"

// booting is a deployed host that is off, with a data image asked for.
func (l *lab) booting(h lifecycle.Host) lifecycle.Host {
	l.Helper()
	h = l.does(l.deploy(l.available(h)), event.PowerOff, lifecycle.Switched{Kind: event.PowerOff})
	h.Intent.DataImage = &event.DataImageWish{URL: dataImage}
	return h
}

// What keeps a data image from the machine is told, and the machine goes on.
func TestDataImageTroubles(t *testing.T) {
	for name, c := range map[string]struct {
		images func(image, checksum string) error
		faults ironictest.Faults
		class  event.Class
		says   string
	}{
		"the image is not there":     {func(image, _ string) error { return missing(image) }, ironictest.Faults{}, event.ClassImage, "code 404"},
		"the BMC refuses it":         {nil, ironictest.Faults{FailMedia: true}, event.ClassMedia, "Could not attach"},
		"the BMC is not to be found": {nil, ironictest.Faults{Down: true}, event.ClassUnreachable, "connection failed"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, ironictest.Config{Images: c.images}, nil)
			h := l.booting(l.host())
			l.machine(h).SetFaults(c.faults)
			h, p := l.fails(h, event.Media)
			if p.Class != c.class || !strings.Contains(p.Message, c.says) {
				t.Errorf("class %q, message %q: want %q and %q", p.Class, p.Message, c.class, c.says)
			}
			l.machine(h).SetFaults(ironictest.Faults{})
			if l.must(h, event.PowerOn); !l.machine(h).View().On {
				t.Error("the machine did not go on after that")
			}
		})
	}
}

// missing is what Ironic says of a data image that is not there.
func missing(image string) error {
	if image != dataImage {
		return nil
	}
	return errors.New("HTTP code 404 in answer to the request HEAD")
}

// A live image that the machine runs is not taken for a data image, or thrown out.
func TestLiveImageIsNoDataImage(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.available(l.host())
	format := v1alpha1.DiskFormatLiveISO
	h.Intent.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/live.iso", DiskFormat: &format}
	h = l.does(l.deploy(h), event.PowerOff, lifecycle.Switched{Kind: event.PowerOff})
	before := l.machine(h).View().CD
	h.Intent.DataImage = &event.DataImageWish{URL: dataImage}
	h, p := l.fails(h, event.Media)
	if p.Class != event.ClassMedia || p.Next == "" {
		t.Errorf("problem %+v", p)
	}
	if now := l.machine(h).View().CD; before == "" || now != before {
		t.Errorf("in the drive: %q, before %q", now, before)
	}
}

func TestDataImageNeedsANewerIronic(t *testing.T) {
	l := newLab(t, ironictest.Config{Release: ironictest.Ironic21}, nil)
	h := l.host()
	h.Intent.Spec.InspectionMode = v1alpha1.InspectionModeFast
	_, p := l.fails(l.booting(h), event.Media)
	if p.Class != event.ClassUnsupported || !strings.Contains(p.Message, "1.89") {
		t.Errorf("problem %+v", p)
	}
}
