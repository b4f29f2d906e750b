package registrar

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// holder is a backend that holds a host by now.
type holder struct {
	err  error
	node string // of the host whose firmware was read
}

func (*holder) Look(context.Context, event.Kind, lifecycle.Host) (lifecycle.Outlook, error) {
	return lifecycle.Finished{Result: lifecycle.Result{Backend: "b", Node: "n"}}, nil
}

func (*holder) Do(context.Context, lifecycle.Host, lifecycle.Write) error { return nil }

func (b *holder) Firmware(_ context.Context, h lifecycle.Host) (*event.Firmware, error) {
	b.node = h.Registration.Node
	return &event.Firmware{}, b.err
}

func (*holder) PutData(context.Context, string, string, any) (string, error) { return "d", nil }

// The firmware of a host is read when it is registered, from the node that it has by
// then. That it cannot be read keeps no host from being registered.
func TestFirmwareIsReadWhenRegistered(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want event.FirmwareRead
	}{
		"it is read":        {nil, event.FirmwareRead{Digest: "d", At: now}},
		"it cannot be read": {errors.New("500"), event.FirmwareRead{At: now, Problem: "500"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &holder{err: tt.err}
			step, err := New(b, b, func() time.Time { return now }, DefaultConfig()).Step(t.Context(), host(fresh))
			if err != nil {
				t.Fatal(err)
			}
			record, _ := step.(lifecycle.Record)
			f, enrolled := record.Fact.(lifecycle.Enrolled)
			if diff := cmp.Diff(tt.want, f.Firmware); !enrolled || diff != "" || b.node != "n" {
				t.Errorf("step %+v, read of node %q (-want +got):\n%s", step, b.node, diff)
			}
		})
	}
}
