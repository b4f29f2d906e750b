package projector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// restored is the host that the bus makes of an object's status.
func restored(o *v1alpha1.BareMetalHost, digest string) lifecycle.Host {
	h := lifecycle.Host{UID: string(o.UID), Epoch: "e", Rev: 1}
	h.Intent = intentOf(o, surroundings{secret: "11", now: noon})
	if b := baseOf(o, digest); b != nil {
		h.Intent.Base = b
		h.Registration, h.Inspection, h.Provisioning, h.Power = *b.Registration, *b.Inspection, *b.Provisioning, *b.Power
	}
	if o.DeletionTimestamp != nil {
		h.Intent.DeletedAt = o.DeletionTimestamp.UTC()
	}
	return h.WithNewest(event.SectionIntent, lifecycle.Meta{Rev: 1, Fact: event.Restored})
}

// remembers is an object with a status as a host in use had it.
func remembers(state v1alpha1.ProvisioningState, change ...func(*v1alpha1.BareMetalHost)) *v1alpha1.BareMetalHost {
	at := metav1.NewTime(earlier)
	good := lifecycle.Credentials(event.Intent{Credentials: event.SecretRef{Namespace: "lab", Name: "host-a-bmc", Version: "5"}})
	o := object()
	o.Status = v1alpha1.BareMetalHostStatus{
		OperationalStatus: v1alpha1.OperationalStatusOK, LastUpdated: &at, PoweredOn: true, HardwareProfile: "unknown",
		HardwareDetails: &v1alpha1.HardwareDetails{CPU: v1alpha1.CPU{Arch: "x86_64"}},
		GoodCredentials: good, TriedCredentials: good,
		Provisioning:     v1alpha1.ProvisionStatus{State: state, ID: "node-1", BootMode: v1alpha1.UEFI},
		OperationHistory: v1alpha1.OperationHistory{Register: v1alpha1.OperationMetric{Start: at, End: at}},
	}
	for _, c := range change {
		c(o)
	}
	return o
}

func deployed(o *v1alpha1.BareMetalHost) {
	image := v1alpha1.Image{URL: "http://192.0.2.80/os.iso", DiskFormat: new(v1alpha1.DiskFormatLiveISO)}
	o.Spec.Image, o.Status.Provisioning.Image, o.Status.LastAttemptedImage = &image, image, &image
}

func leaving(o *v1alpha1.BareMetalHost) { o.DeletionTimestamp = &metav1.Time{Time: noon} }

func unknownHardware(o *v1alpha1.BareMetalHost) { o.Status.HardwareDetails = nil }

func TestAHostComesBackWhereItWas(t *testing.T) {
	tests := map[string]struct {
		object *v1alpha1.BareMetalHost
		want   v1alpha1.ProvisioningState
	}{
		"unmanaged":                  {remembers(v1alpha1.StateUnmanaged, func(o *v1alpha1.BareMetalHost) { o.Spec.BMC = v1alpha1.BMCDetails{} }), v1alpha1.StateUnmanaged},
		"registering":                {remembers(v1alpha1.StateRegistering, unknownHardware), v1alpha1.StateRegistering},
		"inspecting":                 {remembers(v1alpha1.StateInspecting, unknownHardware), v1alpha1.StateInspecting},
		"match profile (old)":        {remembers(v1alpha1.StateMatchProfile), v1alpha1.StatePreparing},
		"preparing":                  {remembers(v1alpha1.StatePreparing), v1alpha1.StatePreparing},
		"ready (old)":                {remembers(v1alpha1.StateReady), v1alpha1.StateAvailable},
		"available":                  {remembers(v1alpha1.StateAvailable), v1alpha1.StateAvailable},
		"provisioning":               {remembers(v1alpha1.StateProvisioning, deployed), v1alpha1.StateProvisioning},
		"provisioned":                {remembers(v1alpha1.StateProvisioned, deployed), v1alpha1.StateProvisioned},
		"provisioned, no image":      {remembers(v1alpha1.StateProvisioned), v1alpha1.StateProvisioned},
		"externally provisioned":     {remembers(v1alpha1.StateExternallyProvisioned, func(o *v1alpha1.BareMetalHost) { o.Spec.ExternallyProvisioned = true }), v1alpha1.StateExternallyProvisioned},
		"deprovisioning":             {remembers(v1alpha1.StateDeprovisioning, deployed), v1alpha1.StateDeprovisioning},
		"powering off before delete": {remembers(v1alpha1.StatePoweringOffBeforeDelete, leaving), v1alpha1.StatePoweringOffBeforeDelete},
		"powering off, and moved where it is to stay": {remembers(v1alpha1.StatePoweringOffBeforeDelete), v1alpha1.StateAvailable},
		"deleting":                                     {remembers(v1alpha1.StateDeleting, leaving), v1alpha1.StateDeleting},
		"deleting, and never registered":               {remembers(v1alpha1.StateDeleting, leaving, func(o *v1alpha1.BareMetalHost) { o.Status.Provisioning.ID = "" }), v1alpha1.StateDeleting},
		"deleting, uninspected, and moved to stay":     {remembers(v1alpha1.StateDeleting, unknownHardware), v1alpha1.StateInspecting},
		"deleting, another's disk, and moved to stay":  {remembers(v1alpha1.StateDeleting, func(o *v1alpha1.BareMetalHost) { o.Spec.ExternallyProvisioned = true }), v1alpha1.StateExternallyProvisioned},
		"available, without the hardware that it had":  {remembers(v1alpha1.StateAvailable, unknownHardware), v1alpha1.StateAvailable},
		"provisioned, without the hardware it had":     {remembers(v1alpha1.StateProvisioned, deployed, unknownHardware), v1alpha1.StateProvisioned},
		"provisioned, and its Secret is another now":   {remembers(v1alpha1.StateProvisioned, deployed, func(o *v1alpha1.BareMetalHost) { o.Status.GoodCredentials.Version = "1" }), v1alpha1.StateProvisioned},
		"provisioned, in trouble":                      {remembers(v1alpha1.StateProvisioned, deployed, troubled(v1alpha1.ProvisionedRegistrationError)), v1alpha1.StateProvisioned},
		"registering, in trouble":                      {remembers(v1alpha1.StateRegistering, unknownHardware, troubled(v1alpha1.RegistrationError)), v1alpha1.StateRegistering},
		"available, in trouble":                        {remembers(v1alpha1.StateAvailable, troubled(v1alpha1.PowerManagementError)), v1alpha1.StateAvailable},
		"available, tried in vain":                     {remembers(v1alpha1.StateAvailable, troubled(v1alpha1.ProvisioningError)), v1alpha1.StateAvailable},
		"provisioned and detached":                     {remembers(v1alpha1.StateProvisioned, deployed, detached), v1alpha1.StateProvisioned},
		"provisioned, while its firmware was serviced": {remembers(v1alpha1.StateProvisioned, deployed, func(o *v1alpha1.BareMetalHost) { o.Status.OperationalStatus = v1alpha1.OperationalStatusServicing }), v1alpha1.StateProvisioned},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			digest := ""
			if tc.object.Status.HardwareDetails != nil {
				digest = "d1"
			}
			h := restored(tc.object, digest)
			if got := lifecycle.Stage(h); got != tc.want {
				t.Fatalf("it comes back as %q, want %q", got, tc.want)
			}
			if op, _ := h.Op(); op != nil {
				t.Errorf("an operation is under way: %+v", op)
			}
			was, is := tc.object.Status, lifecycle.Status(h)
			if is.ErrorType != was.ErrorType || is.ErrorMessage != was.ErrorMessage || is.ErrorCount != was.ErrorCount {
				t.Errorf("error %q %q %d, want %q %q %d", is.ErrorType, is.ErrorMessage, is.ErrorCount, was.ErrorType, was.ErrorMessage, was.ErrorCount)
			}
			if was.OperationalStatus == v1alpha1.OperationalStatusDetached != (is.OperationalStatus == v1alpha1.OperationalStatusDetached) {
				t.Errorf("operational status %q, want %q", is.OperationalStatus, was.OperationalStatus)
			}
			if diff := cmp.Diff(was.Provisioning.Image, is.Provisioning.Image); diff != "" {
				t.Errorf("image: %s", diff)
			}
			if is.Provisioning.ID != was.Provisioning.ID || is.PoweredOn != was.PoweredOn || is.OperationHistory != was.OperationHistory {
				t.Errorf("status is %+v, was %+v", is, was)
			}
		})
	}
}

func troubled(kind v1alpha1.ErrorType) func(*v1alpha1.BareMetalHost) {
	return func(o *v1alpha1.BareMetalHost) {
		o.Status.OperationalStatus, o.Status.ErrorType = v1alpha1.OperationalStatusError, kind
		o.Status.ErrorMessage, o.Status.ErrorCount = "no answer. Look at it", 3
	}
}

func detached(o *v1alpha1.BareMetalHost) {
	o.Status.OperationalStatus = v1alpha1.OperationalStatusDetached
	o.Annotations[v1alpha1.DetachedAnnotation] = ""
}

func TestAMachineInUseStaysOnAfterARestore(t *testing.T) {
	o := remembers(v1alpha1.StateProvisioned, deployed, func(o *v1alpha1.BareMetalHost) { o.Status.PoweredOn = false })
	if h := restored(o, "d1"); h.Power.On != nil {
		t.Error("a status that may never have known the power says that it is off")
	}
}

func TestHealthIsRemembered(t *testing.T) {
	o := remembers(v1alpha1.StateAvailable, func(o *v1alpha1.BareMetalHost) {
		o.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.HealthyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.WarningHealthReason},
			{Type: v1alpha1.ManageableCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.PowerFailureReason, Message: "no power"},
		}
	})
	if h := restored(o, "d1"); h.Power.Health != "Warning" || h.Power.Fault != "no power" {
		t.Errorf("power is %+v", h.Power)
	}
}

func TestParseStatus(t *testing.T) {
	tests := map[string]struct {
		text string
		ok   bool
	}{
		"a whole status":                 {encode(remembers(v1alpha1.StateProvisioned, deployed).Status), true},
		"one without its times":          {`{"provisioning":{"state":"available","ID":"n"}}`, true},
		"every word of operationalState": {`{"operationalStatus":"servicing","errorType":"servicing error","provisioning":{"state":"provisioned"}}`, true},
		"an old state":                   {`{"provisioning":{"state":"ready"}}`, true},
		"an empty status":                {`{}`, true},
		"no JSON":                        {`provisioned`, false},
		"a list":                         {`[]`, false},
		"a state that is none":           {`{"provisioning":{"state":"provisoned"}}`, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := parseStatus(tc.text); (err == nil) != tc.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
