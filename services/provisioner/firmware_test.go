package provisioner

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// reader is a backend whose operations are always at their end.
type reader struct {
	err   error
	none  bool
	reads int
}

func (r *reader) Look(context.Context, event.Kind, lifecycle.Host) (lifecycle.Outlook, error) {
	return lifecycle.Finished{}, nil
}

func (*reader) Do(context.Context, lifecycle.Host, lifecycle.Write) error { return nil }

func (r *reader) Firmware(context.Context, lifecycle.Host) (*event.Firmware, error) {
	r.reads++
	if r.none || r.err != nil {
		return nil, r.err
	}
	return &event.Firmware{Settings: map[string]string{"Turbo": "Enabled"}}, nil
}

func (*reader) PutData(context.Context, string, string, any) (string, error) { return "new", nil }

// read is a host whose firmware was read, some time ago.
func read(f event.FirmwareRead, ago time.Duration) change {
	return func(h *lifecycle.Host) { f.At = now.Add(-ago); h.Registration.Firmware = f }
}

// Firmware is read where nobody did, tried again later where that failed, and left
// alone otherwise; what went wrong is no error of the host, and loses nothing.
func TestFirmwareIsRead(t *testing.T) {
	running := []change{wants("a"), has("a")}
	for name, tt := range map[string]struct {
		host  lifecycle.Host
		from  reader
		reads int
		want  lifecycle.Step
	}{
		"nobody has read it":            {host(event.Deployed, running...), reader{}, 1, lifecycle.Record{Fact: lifecycle.FirmwareSeen{Read: event.FirmwareRead{Digest: "new", At: now}}}},
		"there is none":                 {host(event.Deployed, running...), reader{none: true}, 1, lifecycle.Record{Fact: lifecycle.FirmwareSeen{Read: event.FirmwareRead{At: now}}}},
		"it cannot be read":             {host(event.Prepared, read(event.FirmwareRead{Digest: "old", Problem: "500"}, time.Hour)), reader{err: errors.New("503")}, 1, lifecycle.Record{Fact: lifecycle.FirmwareSeen{Read: event.FirmwareRead{Digest: "old", At: now, Problem: "503"}}}},
		"it could not be read just now": {host(event.Prepared, read(event.FirmwareRead{Problem: "500"}, time.Minute)), reader{}, 0, lifecycle.Wait{For: "the firmware to be readable", Every: 9 * time.Minute, Steady: true}},
		"it is known":                   {host(event.Prepared, read(event.FirmwareRead{Digest: "old"}, 48*time.Hour)), reader{}, 0, lifecycle.Nothing{}},
		"the host is paused":            {host(event.Deployed, append(running, paused)...), reader{}, 0, lifecycle.Nothing{}},
		"the host is detached":          {host(event.Deployed, append(running, detached)...), reader{}, 0, lifecycle.Nothing{}},
		"its BMC does not answer":       {host(event.Deployed, append(running, unreached)...), reader{}, 0, lifecycle.Nothing{}},
		"it was changed": {
			host(event.Deployed, append(running, read(event.FirmwareRead{Digest: "old"}, time.Hour), firmware, op(event.Service))...),
			reader{},
			1,
			lifecycle.Record{Fact: lifecycle.Serviced{Read: &event.FirmwareRead{Digest: "new", At: now}}},
		},
		"nothing was done to it": {
			host(event.Unprepared, read(event.FirmwareRead{Digest: "old"}, time.Hour)), reader{}, 0, lifecycle.Record{Fact: lifecycle.ReadyForImage{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(&tt.from, &tt.from, func() time.Time { return now }, DefaultConfig())
			step, err := p.Step(t.Context(), tt.host)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, step); diff != "" || tt.from.reads != tt.reads {
				t.Errorf("read %d times, want %d (-want +got):\n%s", tt.from.reads, tt.reads, diff)
			}
		})
	}
}

// That the backend has lost the host is the registrar's to find out.
func TestFirmwareOfALostHost(t *testing.T) {
	from := &reader{err: lifecycle.ErrUnregistered}
	p := New(from, from, func() time.Time { return now }, DefaultConfig())
	if _, err := p.Step(t.Context(), host(event.Prepared)); !errors.Is(err, lifecycle.ErrUnregistered) {
		t.Errorf("error %v", err)
	}
}
