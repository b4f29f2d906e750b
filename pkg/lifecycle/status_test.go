package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// summary is a host's conditions as Type=Status/Reason, in their order.
func summary(h lifecycle.Host) string {
	var parts []string
	for _, c := range lifecycle.Status(h).Conditions {
		parts = append(parts, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return strings.Join(parts, " ")
}

func TestConditions(t *testing.T) {
	unregistered := registered(event.Unprepared)
	unregistered.Registration.Registered = false
	refused := unregistered
	refused.Registration.Problem = &event.Problem{Type: v1alpha1.RegistrationError, Message: "no"}
	inspecting := registered(event.Unprepared)
	inspecting.Inspection.Done = false
	broken := registered(event.Deployed)
	broken.Power.Problem = &event.Problem{Type: v1alpha1.PowerManagementError, Message: "no"}
	detached := registered(event.Deployed)
	detached.Registration.Detached, detached.Intent.Detached = true, &event.DetachRequest{}
	faulty := registered(event.Prepared)
	faulty.Power.Fault, faulty.Power.Health = "no answer", "Critical"
	leaving := registered(event.Prepared)
	leaving.Intent.DeletedAt = epoch
	gone := leaving
	gone.Power.OffForDelete = true
	for name, c := range map[string]struct {
		host lifecycle.Host
		want string
	}{
		"registering":              {unregistered, "Ready=False/NotProvisioned AvailableForProvisioning=False/NotAvailable Healthy=Unknown/Unknown Manageable=False/Registering Progressing=True/Registering Provisioned=False/NotProvisioned"},
		"registration failed":      {refused, "Ready=False/Error AvailableForProvisioning=False/NotAvailable Healthy=Unknown/Unknown Manageable=False/RegistrationFailed Progressing=True/Registering Provisioned=False/NotProvisioned"},
		"inspecting":               {inspecting, "Ready=False/NotProvisioned AvailableForProvisioning=False/NotAvailable Healthy=Unknown/Unknown Manageable=True/Manageable Progressing=True/Inspecting Provisioned=False/NotProvisioned"},
		"preparing":                {registered(event.Unprepared), "Ready=False/NotProvisioned AvailableForProvisioning=False/NotAvailable Healthy=Unknown/Unknown Manageable=True/Manageable Progressing=True/Preparing Provisioned=False/NotProvisioned"},
		"available":                {registered(event.Prepared), "Ready=False/NotProvisioned AvailableForProvisioning=True/Available Healthy=Unknown/Unknown Manageable=True/Manageable Progressing=False/NotProgressing Provisioned=False/NotProvisioned"},
		"provisioning":             {registered(event.Deploying), "Ready=False/NotProvisioned AvailableForProvisioning=False/NotAvailable Healthy=Unknown/Unknown Manageable=True/Manageable Progressing=True/Provisioning Provisioned=False/NotProvisioned"},
		"provisioned":              {registered(event.Deployed), "Ready=True/Provisioned AvailableForProvisioning=False/NotAvailable Healthy=Unknown/Unknown Manageable=True/Manageable Progressing=False/NotProgressing Provisioned=True/Provisioned"},
		"externally provisioned":   {registered(event.External), "Ready=True/Provisioned AvailableForProvisioning=False/NotAvailable Healthy=Unknown/Unknown Manageable=True/Manageable Progressing=False/NotProgressing Provisioned=True/Provisioned"},
		"deprovisioning":           {registered(event.Undeploying), "Ready=False/NotProvisioned AvailableForProvisioning=False/NotAvailable Healthy=Unknown/Unknown Manageable=True/Manageable Progressing=True/Deprovisioning Provisioned=False/NotProvisioned"},
		"powering off":             {leaving, "Ready=False/NotProvisioned AvailableForProvisioning=False/NotAvailable Healthy=Unknown/Unknown Manageable=True/Manageable Progressing=True/PoweringOffBeforeDelete Provisioned=False/NotProvisioned"},
		"deleting":                 {gone, "Ready=False/NotProvisioned AvailableForProvisioning=False/NotAvailable Healthy=Unknown/Unknown Manageable=True/Manageable Progressing=True/Deleting Provisioned=False/NotProvisioned"},
		"an error in use":          {broken, "Ready=False/Error AvailableForProvisioning=False/NotAvailable Healthy=Unknown/Unknown Manageable=True/Manageable Progressing=False/NotProgressing Provisioned=True/Provisioned"},
		"detached":                 {detached, "Ready=False/Detached AvailableForProvisioning=False/NotAvailable Healthy=Unknown/Unknown Manageable=True/Manageable Progressing=False/Detached Provisioned=True/Provisioned"},
		"a fault and a bad report": {faulty, "Ready=False/NotProvisioned AvailableForProvisioning=True/Available Healthy=False/CriticalError Manageable=False/PowerFailure Progressing=False/NotProgressing Provisioned=False/NotProvisioned"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Fields(c.want), strings.Fields(summary(c.host))); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProblemIsShownAndCounted(t *testing.T) {
	h := registered(event.Deployed)
	fail := lifecycle.Failed{Kind: event.PowerOff, Problem: lifecycle.NewProblem(v1alpha1.PowerManagementError, event.ClassPower, "the BMC refused")}
	h = record(record(h, fail), fail)
	s := lifecycle.Status(h)
	if s.OperationalStatus != v1alpha1.OperationalStatusError || s.ErrorType != v1alpha1.PowerManagementError || s.ErrorCount != 2 {
		t.Errorf("status %q, error %q, count %d", s.OperationalStatus, s.ErrorType, s.ErrorCount)
	}
	if !strings.HasPrefix(s.ErrorMessage, "the BMC refused. ") || !strings.Contains(s.ErrorMessage, "event log") {
		t.Errorf("the message %q says not what to do", s.ErrorMessage)
	}
	h = record(h, lifecycle.Switched{Kind: event.PowerOff})
	if s = lifecycle.Status(h); s.OperationalStatus != v1alpha1.OperationalStatusOK || s.ErrorMessage != "" || s.ErrorCount != 0 {
		t.Errorf("after success: status %q, message %q, count %d", s.OperationalStatus, s.ErrorMessage, s.ErrorCount)
	}
}

// B05: an image that cannot be brought to the disk counts its failures over
// the cleanings in between, its error stays readable, and another image starts anew.
func TestB05FailedImage(t *testing.T) {
	h := registered(event.Prepared)
	h.Intent.Spec.Online, h.Intent.Spec.Image = true, image("http://192.0.2.80/os.qcow2")
	fail := lifecycle.Failed{Kind: event.Deploy, Problem: lifecycle.NewProblem(v1alpha1.ProvisioningError, event.ClassImage, "checksum mismatch of http://192.0.2.80/os.qcow2")}
	for round := 1; round <= 10; round++ {
		h = record(record(h, lifecycle.Started{Kind: event.Deploy, Step: "boot"}), fail)
		h = record(record(h, lifecycle.Started{Kind: event.Undeploy, Step: "off"}), lifecycle.Deprovisioned{})
		s := lifecycle.Status(h)
		if s.ErrorCount != round || s.ProvisioningFailCount != round || !strings.Contains(s.ErrorMessage, "checksum") {
			t.Fatalf("round %d: count %d, attempts %d, message %q", round, s.ErrorCount, s.ProvisioningFailCount, s.ErrorMessage)
		}
	}
	h.Intent.Spec.Image = image("http://192.0.2.80/other.qcow2")
	h = record(h, lifecycle.Forgiven{})
	if s := lifecycle.Status(h); s.ErrorCount != 0 || s.ErrorMessage != "" || s.ProvisioningFailCount != 0 {
		t.Errorf("another image: count %d, attempts %d, message %q", s.ErrorCount, s.ProvisioningFailCount, s.ErrorMessage)
	}
}

func TestAnnounceOnce(t *testing.T) {
	h := registered(event.Deployed)
	fail := lifecycle.Failed{Kind: event.PowerOff, Problem: lifecycle.NewProblem(v1alpha1.PowerManagementError, event.ClassPower, "the BMC refused")}
	first := record(h, fail)
	again := record(first, fail)
	want := []lifecycle.Announcement{{Reason: "PowerManagementError", Message: lifecycle.Message(*first.Power.Problem), Warning: true}}
	if diff := cmp.Diff(want, lifecycle.Announce(h, first, event.SectionPower, fail.Name())); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	if got := lifecycle.Announce(first, again, event.SectionPower, fail.Name()); got != nil {
		t.Errorf("the same failure is told again: %v", got)
	}
}

// What a host has to boot next is waited for by name, and only by who boots it.
func TestWaitsForItsRamdisk(t *testing.T) {
	own := &event.RamdiskWish{Waits: "the image"}
	host := func(p event.PhaseOfDisk, change func(*lifecycle.Host)) lifecycle.Host {
		h := registered(p)
		h.Intent.Ramdisk = own
		if change != nil {
			change(&h)
		}
		return h
	}
	live, wiped := new("live-iso"), v1alpha1.CleaningModeDisabled
	for name, tc := range map[string]struct {
		host  lifecycle.Host
		waits bool
	}{
		"inspecting": {host(event.Unprepared, func(h *lifecycle.Host) { h.Inspection.Done = false }), true},
		"inspecting the BMC": {host(event.Unprepared, func(h *lifecycle.Host) {
			h.Inspection.Done, h.Intent.Spec.InspectionMode = false, v1alpha1.InspectionModeFast
		}), false},
		"one that is there": {host(event.Unprepared, func(h *lifecycle.Host) { h.Inspection.Done, h.Intent.Ramdisk = false, &event.RamdiskWish{ISO: "x"} }), false},
		"preparing":         {host(event.Unprepared, nil), true},
		"provisioning":      {host(event.Deploying, nil), true},
		"a live image": {host(event.Deploying, func(h *lifecycle.Host) {
			h.Intent.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os.iso", DiskFormat: live}
		}), false},
		"deprovisioning":   {host(event.Undeploying, nil), true},
		"without cleaning": {host(event.Undeploying, func(h *lifecycle.Host) { h.Intent.Spec.AutomatedCleaningMode = wiped }), false},
		"in use":           {host(event.Deployed, nil), false},
		"at rest":          {host(event.Prepared, nil), false},
		"being worked on":  {host(event.Deploying, func(h *lifecycle.Host) { h.Provisioning.Op = &event.Op{Kind: event.Deploy, Step: "deploy"} }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lifecycle.WaitsFor(tc.host); (got == "waits for the image") != tc.waits {
				t.Errorf("it says %q", got)
			}
		})
	}
}
