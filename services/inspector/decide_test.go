package inspector

import (
	"testing"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// registered is a host whose hardware is not known yet.
func registered(changes ...func(*lifecycle.Host)) lifecycle.Host {
	h := lifecycle.Host{UID: "u", Rev: 1}.WithNewest(event.SectionIntent, lifecycle.Meta{Seq: 1, Rev: 1})
	h.Intent.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.1", CredentialsName: "s"}
	h.Intent.Credentials = event.SecretRef{Namespace: "lab", Name: "s", Version: "7"}
	h.Registration = event.Registration{Registered: true, Node: "n", Address: h.Intent.Spec.BMC.Address, Good: lifecycle.Credentials(h.Intent)}
	for _, c := range changes {
		c(&h)
	}
	return h
}

func faulty(t v1alpha1.ErrorType) func(*lifecycle.Host) {
	return func(h *lifecycle.Host) { h.Intent.Invalid = &event.Problem{Type: t, Message: "no", Local: true} }
}

// What the specification gets wrong keeps a host from being inspected if the
// inspection, or what comes before it, needs it.
func TestFaultsHoldInspectionUp(t *testing.T) {
	begun := func(h *lifecycle.Host) { h.Inspection.Op = &event.Op{Kind: event.Inspect, Reason: "r"} }
	for name, c := range map[string]struct {
		host lifecycle.Host
		want event.Kind
	}{
		"no fault":                        {registered(), event.Inspect},
		"a fault of the inspection":       {registered(faulty(v1alpha1.InspectionError)), ""},
		"a fault of the address":          {registered(faulty(v1alpha1.RegistrationError)), ""},
		"a fault of the image":            {registered(faulty(v1alpha1.ProvisioningError)), event.Inspect},
		"an inspection that is under way": {registered(faulty(v1alpha1.InspectionError), begun), event.Inspect},
	} {
		t.Run(name, func(t *testing.T) {
			task, _ := decide(c.host)
			if task.Kind != c.want {
				t.Errorf("the task is %q, want %q", task.Kind, c.want)
			}
		})
	}
}
