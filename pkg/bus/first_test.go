package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func wish(uid string) lifecycle.Wish {
	return lifecycle.Wish{Fact: event.Created, Intent: event.Intent{
		Namespace: "metal", Name: "host-" + uid, UID: uid, Hash: "1",
		Spec: v1alpha1.BareMetalHostSpec{Online: true, BMC: v1alpha1.BMCDetails{Address: "redfish://192.0.2.1/redfish/v1/Systems/1", CredentialsName: "bmc"}},
	}}
}

func TestFirst(t *testing.T) {
	t0 := time.Now()
	b := bustest.New(t)
	t.Log("start", time.Since(t0))
	t0 = time.Now()
	h, err := b.Load(t.Context(), "u1")
	if err != nil || h.Exists() {
		t.Fatal(err, h)
	}
	h, err = b.Append(t.Context(), h, wish("u1"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Load(t.Context(), "u1")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(t0), got.Rev, got.Head, got.Epoch, h.Head, got.Intent.Name)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	w := &enroller{done: cancel}
	t0 = time.Now()
	if err := b.Serve(ctx, w); err != nil {
		t.Fatal(err)
	}
	t.Log("served", time.Since(t0))
	hs, err := b.Snapshots(t.Context(), "u1", 0)
	for _, h := range hs {
		s, m := h.NewestFact()
		t.Log(h.Rev, s, m.Fact, lifecycle.Stage(h))
	}
	if err != nil {
		t.Fatal(err)
	}
}

type enroller struct{ done func() }

func (*enroller) Section() event.Section   { return event.SectionRegistration }
func (*enroller) Cares(t bus.Trigger) bool { return t.Stage == v1alpha1.StateRegistering }
func (e *enroller) Step(_ context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	op := h.Registration.Op
	switch {
	case h.Registration.Registered:
		e.done()
		return lifecycle.Nothing{}, nil
	case op == nil:
		return lifecycle.Write{Kind: event.Enroll, Name: "create"}, nil
	case op.Step == "create":
		return lifecycle.Write{Kind: event.Enroll, Name: "manage"}, nil
	default:
		e.done()
		return lifecycle.Record{Fact: lifecycle.Enrolled{Backend: "b", Node: "n"}}, nil
	}
}
func (*enroller) Do(context.Context, lifecycle.Host, lifecycle.Write) error { return nil }
