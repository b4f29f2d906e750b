package ironic_test

import (
	"errors"
	"testing"

	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestFirmwareIsRead(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.available(l.host())
	f, err := l.backend.Firmware(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if f.Settings["NumaNodes"] != "1" || f.Schema["NumaNodes"].UpperBound == nil || len(f.Odd) != 0 {
		t.Errorf("settings %+v", f)
	}
	if c := f.Components; len(c) != 3 || c[0].InitialVersion == "" {
		t.Errorf("components %+v", c)
	}
	h.Intent.Spec.BMC.Address = "ipmi://192.0.2.10"
	if f, err = l.backend.Firmware(t.Context(), h); f != nil || err != nil {
		t.Errorf("firmware by IPMI: %+v, error %v, want nothing", f, err)
	}
}

func TestOldIronicsKnowNoComponents(t *testing.T) {
	l := newLab(t, ironictest.Config{Release: ironictest.Ironic21}, nil)
	f, err := l.backend.Firmware(t.Context(), l.enroll(l.host()))
	if err != nil || len(f.Settings) == 0 || f.Components != nil {
		t.Errorf("firmware %+v, error %v, want settings only", f, err)
	}
}

func TestMedia(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := running(l)
	inserted := func(want bool) {
		t.Helper()
		for range 2000 {
			got, err := l.backend.MediumInserted(t.Context(), h)
			if err != nil && !errors.Is(err, lifecycle.ErrBusy) {
				t.Fatal(err)
			}
			if err == nil && got == want {
				return
			}
		}
		t.Errorf("the medium is not inserted: %v", want)
	}
	inserted(false)
	if err := l.backend.InsertMedium(t.Context(), h, "http://192.0.2.80/data.iso"); err != nil {
		t.Fatal(err)
	}
	inserted(true)
	for err := lifecycle.ErrBusy; errors.Is(err, lifecycle.ErrBusy); {
		err = l.backend.EjectMedium(t.Context(), h)
		if err != nil && !errors.Is(err, lifecycle.ErrBusy) {
			t.Fatal(err)
		}
	}
	inserted(false)
}

func TestMediaOfOldIronics(t *testing.T) {
	l := newLab(t, ironictest.Config{Release: ironictest.Ironic21}, nil)
	h := l.enroll(l.host())
	if _, err := l.backend.MediumInserted(t.Context(), h); !errors.Is(err, ironic.ErrUnsupported) {
		t.Errorf("error %v, want ErrUnsupported", err)
	}
	if err := l.backend.InsertMedium(t.Context(), h, "http://192.0.2.80/data.iso"); !errors.Is(err, ironic.ErrUnsupported) {
		t.Errorf("error %v, want ErrUnsupported", err)
	}
}

func TestSubscriptions(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.available(l.host())
	id, err := l.backend.Subscribe(t.Context(), h, "https://192.0.2.9/events", "rack 1", map[string]string{"Authorization": canary})
	if err != nil || id == "" {
		t.Fatalf("id %q, error %v", id, err)
	}
	for range 2 { // the second time it is gone already
		if err := l.backend.Unsubscribe(t.Context(), h, id); err != nil {
			t.Error(err)
		}
	}
}

func TestNothingOfAnUnregisteredHost(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.host()
	_, firmware := l.backend.Firmware(t.Context(), h)
	_, medium := l.backend.MediumInserted(t.Context(), h)
	_, subscribe := l.backend.Subscribe(t.Context(), h, "https://192.0.2.9/", "", nil)
	for what, err := range map[string]error{"firmware": firmware, "medium": medium, "subscribe": subscribe, "eject": l.backend.EjectMedium(t.Context(), h)} {
		if !errors.Is(err, lifecycle.ErrUnregistered) {
			t.Errorf("%s: error %v, want ErrUnregistered", what, err)
		}
	}
}
