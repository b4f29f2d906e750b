package bmc

import (
	"context"
	"net/http"
)

// Device is what a machine can be told to boot from.
type Device string

// Boot devices, in Redfish's words.
const (
	None     Device = "None"
	Cd       Device = "Cd"
	Hdd      Device = "Hdd"
	Pxe      Device = "Pxe"
	Usb      Device = "Usb"
	UEFIHTTP Device = "UefiHttp"
)

// BootMode is how the firmware boots.
type BootMode string

// Boot modes. AnyMode leaves it as it is.
const (
	AnyMode BootMode = ""
	UEFI    BootMode = "UEFI"
	Legacy  BootMode = "Legacy"
)

// SetBootOnce makes the next boot, and only that, come from a device; None takes an
// override back. A BMC that will not set the mode along with it is asked without.
func (b *BMC) SetBootOnce(ctx context.Context, d Device, mode BootMode) error {
	return b.converse(ctx, "set the boot device to "+string(d), func(t *talk) error {
		s, err := t.known()
		if err != nil {
			return err
		}
		err = t.patchBoot(s, d, mode)
		if _, refused := refusedByBMC(err, http.StatusBadRequest); refused && mode != AnyMode {
			return t.patchBoot(s, d, AnyMode)
		}
		return err
	})
}

type bootBody struct {
	Boot struct {
		Enabled string `json:"BootSourceOverrideEnabled"`
		Target  Device `json:"BootSourceOverrideTarget"`
		Mode    string `json:"BootSourceOverrideMode,omitempty"`
	}
}

func (t *talk) patchBoot(s *system, d Device, mode BootMode) error {
	var b bootBody
	b.Boot.Enabled, b.Boot.Target, b.Boot.Mode = "Once", d, string(mode)
	if d == None {
		b.Boot.Enabled = "Disabled"
	}
	return t.patchSystem(s, b)
}

// patchSystem changes the system, with the tag of its present state if the BMC wants
// one. It learns from a refusal that it does.
func (t *talk) patchSystem(s *system, body any) error {
	t.lane.memory.Lock()
	tags := t.lane.tags
	t.lane.memory.Unlock()
	if !tags {
		err := t.change(http.MethodPatch, s.path, body, nil)
		if _, wanted := refusedByBMC(err, http.StatusPreconditionRequired, http.StatusPreconditionFailed); !wanted {
			return err
		}
		t.lane.memory.Lock()
		t.lane.tags = true
		t.lane.memory.Unlock()
	}
	_, _, header, err := t.readSystem()
	if err != nil {
		return err
	}
	return t.change(http.MethodPatch, s.path, body, map[string]string{"If-Match": header.Get("ETag")})
}
