package registrar

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// host is a registered host whose Secret and address are the ones that were
// accepted.
func host(change ...func(*lifecycle.Host)) lifecycle.Host {
	h := lifecycle.Host{UID: "u"}.WithNewest(event.SectionIntent, lifecycle.Meta{Seq: 1, Rev: 1})
	h.Intent.Namespace, h.Intent.Name = "lab", "host-a"
	h.Intent.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.1", CredentialsName: "host-a-bmc"}
	h.Intent.Credentials = event.SecretRef{Namespace: "lab", Name: "host-a-bmc", Version: "7"}
	h.Registration = event.Registration{Registered: true, Node: "n", Backend: "redfish", Address: "redfish://192.0.2.1", Good: lifecycle.Credentials(h.Intent), Tried: lifecycle.Credentials(h.Intent)}
	h.Inspection.Done, h.Provisioning.Phase, h.Provisioning.Node = true, event.Deployed, "n"
	for _, c := range change {
		c(&h)
	}
	return h
}

func fresh(h *lifecycle.Host) {
	h.Registration, h.Inspection, h.Provisioning = event.Registration{}, event.Inspection{}, event.Provisioning{}
}

func TestDecide(t *testing.T) {
	deleted := func(h *lifecycle.Host) {
		h.Intent.DeletedAt, h.Provisioning.Phase, h.Power.OffForDelete = now, event.Prepared, true
	}
	for name, c := range map[string]struct {
		host lifecycle.Host
		want string
	}{
		"a host that is well is left alone":       {host(), "nothing"},
		"a new host is enrolled":                  {host(fresh), "enroll"},
		"a paused host is left alone":             {host(fresh, func(h *lifecycle.Host) { h.Intent.Paused = true }), "nothing"},
		"a host without BMC details":              {host(fresh, func(h *lifecycle.Host) { h.Intent.Spec.BMC = v1alpha1.BMCDetails{} }), "nothing"},
		"no Secret is named":                      {host(fresh, func(h *lifecycle.Host) { h.Intent.Spec.BMC.CredentialsName = "" }), "fail: spec.bmc.credentialsName is empty"},
		"no address":                              {host(fresh, func(h *lifecycle.Host) { h.Intent.Spec.BMC.Address = "" }), "fail: spec.bmc.address is empty"},
		"the Secret is not there yet":             {host(fresh, missing(now.Add(-time.Second))), "wait for the Secret lab/host-a-bmc"},
		"the Secret does not come":                {host(fresh, missing(now.Add(-time.Minute))), "fail: the BMC secret lab/host-a-bmc does not exist"},
		"the Secret of a running host vanished":   {host(missing(now.Add(-time.Minute))), "fail: the BMC secret lab/host-a-bmc does not exist"},
		"a fault of what registration needs":      {host(fresh, faulty(v1alpha1.RegistrationError)), "fail: the address is none"},
		"a fault of something else":               {host(fresh, faulty(v1alpha1.ProvisioningError)), "enroll"},
		"a fault of a running host":               {host(faulty(v1alpha1.RegistrationError), func(h *lifecycle.Host) { h.Intent.Credentials.Version = "8" }), "enroll"},
		"a profile that there is not":             {host(fresh, func(h *lifecycle.Host) { h.Intent.Spec.HardwareProfile = "x" }), `fail: no hardware profile named "x"`},
		"other credentials of a running host":     {host(func(h *lifecycle.Host) { h.Intent.Credentials.Version = "8" }), "enroll"},
		"another address of a running host":       {host(func(h *lifecycle.Host) { h.Intent.Spec.BMC.Address = "redfish://192.0.2.2" }), "enroll"},
		"a problem is tried again":                {host(func(h *lifecycle.Host) { h.Registration.Problem = &event.Problem{Kind: event.Enroll} }), "enroll"},
		"a running host that the backend lost":    {host(func(h *lifecycle.Host) { h.Registration.Lost = true }), "enroll"},
		"and holds anew":                          {host(anew), "adopt"},
		"and has taken over":                      {host(anew, func(h *lifecycle.Host) { h.Registration.Adopted = "m" }), "nothing"},
		"one of somebody else's":                  {host(func(h *lifecycle.Host) { h.Provisioning = event.Provisioning{Phase: event.External} }), "adopt"},
		"a host that is cleaned and was lost":     {host(anew, undeploying), "adopt"},
		"a deployment that was lost begins anew":  {host(anew, func(h *lifecycle.Host) { h.Provisioning.Phase = event.Deploying }), "nothing"},
		"an available host that the backend lost": {host(func(h *lifecycle.Host) { h.Registration.Lost, h.Provisioning.Phase = true, event.Prepared }), "enroll"},
		"a failed adoption is tried again": {host(func(h *lifecycle.Host) {
			anew(h)
			h.Registration.Problem = &event.Problem{Kind: event.Adopt}
		}), "adopt"},
		"an adoption of a host that was lost once more is given up": {host(func(h *lifecycle.Host) { h.Registration.Lost, h.Registration.Op = true, &event.Op{Kind: event.Adopt} }), "record adopt.aborted"},
		"a host that is to be detached":                             {host(func(h *lifecycle.Host) { h.Intent.Detached = &event.DetachRequest{} }), "detach"},
		"a busy host is detached later": {host(func(h *lifecycle.Host) {
			h.Intent.Detached, h.Provisioning.Phase = &event.DetachRequest{}, event.Deploying
		}), "nothing"},
		"a busy host is detached by force": {host(func(h *lifecycle.Host) {
			h.Intent.Detached, h.Provisioning.Phase = &event.DetachRequest{Force: true}, event.Deploying
		}), "detach"},
		"a detached host stays so":                          {host(func(h *lifecycle.Host) { h.Intent.Detached, h.Registration.Detached = &event.DetachRequest{}, true }), "nothing"},
		"a detached host is attached again":                 {host(func(h *lifecycle.Host) { h.Registration.Detached = true }), "enroll"},
		"a host at its end is removed":                      {host(deleted), "remove"},
		"a removed host is done with":                       {host(deleted, func(h *lifecycle.Host) { h.Registration.Removed = true }), "nothing"},
		"a host that nobody ever tried is removed by word":  {host(fresh, func(h *lifecycle.Host) { h.Intent.DeletedAt = now }), "record remove.succeeded"},
		"a detached host is removed by word":                {host(deleted, func(h *lifecycle.Host) { h.Intent.Detached, h.Registration.Detached = &event.DetachRequest{}, true }), "record remove.succeeded"},
		"a removal that fails is given up after four times": {host(deleted, failedRemove(4)), "record remove.succeeded"},
		"a removal that fails is tried again before":        {host(deleted, failedRemove(3)), "remove"},
		"an enrolment under way ends before the removal":    {host(fresh, func(h *lifecycle.Host) { h.Intent.DeletedAt, h.Registration.Op = now, &event.Op{Kind: event.Enroll} }), "record enroll.aborted"},
		"a leaving host whose BMC was tried in vain is let go": {host(func(h *lifecycle.Host) {
			h.Intent.DeletedAt, h.Registration.Problem, h.Registration.Failures = now, &event.Problem{Kind: event.Enroll, At: now}, 4
		}), "nothing"},
		"one that was tried in vain before is tried once more": {host(func(h *lifecycle.Host) {
			h.Intent.DeletedAt, h.Registration.Problem, h.Registration.Failures = now, &event.Problem{Kind: event.Enroll, At: now.Add(-time.Hour)}, 4
		}), "enroll"},
		"a leaving host whose Secret is gone makes do without": {host(missing(now.Add(-time.Hour)), func(h *lifecycle.Host) {
			h.Intent.DeletedAt, h.Registration.Problem = now, &event.Problem{Kind: event.Enroll, Local: true}
		}), "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			task, step := decide(c.host, now, 5*time.Second)
			if got := text(task, step); got != c.want {
				t.Errorf("decided %q, want %q", got, c.want)
			}
		})
	}
}

// faulty is a host whose specification has a fault.
func faulty(t v1alpha1.ErrorType) func(*lifecycle.Host) {
	return func(h *lifecycle.Host) {
		h.Intent.Invalid = &event.Problem{Type: t, Message: "the address is none", Local: true}
	}
}

func missing(since time.Time) func(*lifecycle.Host) {
	return func(h *lifecycle.Host) { h.Intent.Credentials.Version, h.Intent.Credentials.MissingSince = "", since }
}

// anew is a host that the backend had lost, and holds as another node.
func anew(h *lifecycle.Host) { h.Registration.Node = "m" }

func undeploying(h *lifecycle.Host) {
	h.Provisioning.Phase, h.Provisioning.Image.URL = event.Undeploying, "http://192.0.2.80/os.iso"
}

func failedRemove(times int) func(*lifecycle.Host) {
	return func(h *lifecycle.Host) {
		h.Registration.Problem, h.Registration.Failures = &event.Problem{Kind: event.Remove, Message: "no", At: now}, times
	}
}

// text is a decision in words.
func text(t lifecycle.Task, s lifecycle.Step) string {
	switch s := s.(type) {
	case lifecycle.Nothing:
		return "nothing"
	case lifecycle.Wait:
		return "wait for " + s.For
	case lifecycle.Record:
		if f, ok := s.Fact.(lifecycle.Failed); ok {
			return "fail: " + f.Problem.Message
		}
		return "record " + s.Fact.Name()
	default:
		return string(t.Kind)
	}
}

func TestEnrolledOrRotated(t *testing.T) {
	res := lifecycle.Result{Backend: "redfish", Node: "n"}
	for name, c := range map[string]struct {
		host lifecycle.Host
		want string
	}{
		"a new host is enrolled":                           {host(fresh), "enroll.succeeded"},
		"other credentials of a known host are a rotation": {host(func(h *lifecycle.Host) { h.Intent.Credentials.Version = "8" }), "credentials.rotated"},
		"another address is another registration":          {host(func(h *lifecycle.Host) { h.Intent.Spec.BMC.Address = "redfish://192.0.2.2" }), "enroll.succeeded"},
		"another node is another registration":             {host(func(h *lifecycle.Host) { h.Registration.Node = "m" }), "enroll.succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := enrolled(c.host, res).Name(); got != c.want {
				t.Errorf("fact %q, want %q", got, c.want)
			}
		})
	}
}

// What the user is told names the Secret and says what to do about it.
func TestMissingSecretSaysWhatToDo(t *testing.T) {
	_, step := decide(host(fresh, missing(now.Add(-time.Hour))), now, time.Second)
	f := step.(lifecycle.Record).Fact.(lifecycle.Failed)
	if m := lifecycle.Message(f.Problem); !strings.Contains(m, "lab/host-a-bmc") || !strings.Contains(m, "username and password") {
		t.Errorf("message %q", m)
	}
	if f.Problem.Type != v1alpha1.RegistrationError {
		t.Errorf("error type %q", f.Problem.Type)
	}
}

func TestFailedEnrolmentNotesWhatWasTried(t *testing.T) {
	h := host(fresh)
	step := withCredentials(h, lifecycle.Record{Fact: lifecycle.Failed{Kind: event.Enroll}})
	tried := step.(lifecycle.Record).Fact.(lifecycle.Failed).Tried
	want := v1alpha1.CredentialsStatus{Reference: &corev1.SecretReference{Name: "host-a-bmc", Namespace: "lab"}, Version: "7"}
	if tried == nil || !lifecycle.SameCredentials(*tried, want) {
		t.Errorf("tried %v", tried)
	}
}
