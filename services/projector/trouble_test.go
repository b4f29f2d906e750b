package projector_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestStatesAreShownInOrderWhateverTheAPIDoes(t *testing.T) {
	s := newSite(t)
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	s.api.Fault(func(w kubetest.Write) int {
		mu.Lock()
		defer mu.Unlock()
		if w.Resource == "leases" || w.Verb == "create" && w.Resource != "hardwaredata" || random.IntN(3) > 0 {
			return 0
		}
		return []int{http.StatusConflict, http.StatusInternalServerError, http.StatusServiceUnavailable}[random.IntN(3)]
	})
	s.start("a")
	s.start("b")
	const hosts = 5
	for i := range hosts {
		s.apply(fmt.Sprintf("host-%d", i))
	}
	for i := range hosts {
		name := fmt.Sprintf("host-%d", i)
		s.available(name)
		s.happens(name,
			lifecycle.Failed{Kind: event.PowerOn, Problem: event.Problem{Type: v1alpha1.PowerManagementError, Message: "no power"}},
		)
		s.eventually(name, "the error is shown", func(o *v1alpha1.BareMetalHost) bool { return o.Status.ErrorMessage == "no power" })
		if diff := cmp.Diff([]string{"registering", "inspecting", "preparing", "available"}, s.states(name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A status that is written, though nobody is told so, is found at the next look: its
// news are told all the same.
func TestNewsAreToldThoughTheAnswerToTheStatusIsLost(t *testing.T) {
	s := newSite(t)
	s.api.Lose(func(w kubetest.Write) bool { return w.Subresource == "status" })
	s.start("a")
	s.apply("host-a")
	s.available("host-a")
	s.provisioned("host-a")
	for _, reason := range []string{"Registered", "BMCAccessValidated", "InspectionComplete", "ProvisioningStarted", "ProvisioningComplete"} {
		s.event(reason, corev1.EventTypeNormal)
	}
}

func TestALateProjectorShowsEveryState(t *testing.T) {
	s := newSite(t)
	stop := s.start("a")
	s.apply("host-a")
	s.shows("host-a", v1alpha1.StateRegistering)
	stop()
	s.happens("host-a",
		s.enrolled("host-a"), lifecycle.Inspected{Digest: s.hardware("host-a"), Source: "redfish"},
		lifecycle.Started{Kind: event.Prepare}, lifecycle.ReadyForImage{},
	)
	s.start("b")
	s.shows("host-a", v1alpha1.StateAvailable)
	if diff := cmp.Diff([]string{"registering", "inspecting", "preparing", "available"}, s.states("host-a")); diff != "" {
		t.Error(diff)
	}
}

func TestEachStateStaysVisible(t *testing.T) {
	s := newSite(t)
	s.cfg.LeastVisible = 100 * time.Millisecond
	s.start("a")
	s.apply("host-a")
	began := time.Now()
	s.available("host-a")
	if took := time.Since(began); took < 3*s.cfg.LeastVisible {
		t.Errorf("three states were shown within %s", took)
	}
}

func TestAnIdleHostIsNotWritten(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a")
	s.available("host-a")
	s.provisioned("host-a")
	s.caughtUp("host-a")
	var before int
	kubetest.Eventually(t, "all is written", func() bool { // three ticks of the bus without a write
		n := len(s.api.Writes())
		defer func() { before = n }()
		pause(t, 300*time.Millisecond)
		return n == before
	})
	if err := s.bus.Wake(t.Context(), "projector", s.uids["host-a"], "test"); err != nil {
		t.Fatal(err)
	}
	pause(t, 1500*time.Millisecond)
	for _, w := range s.api.Writes()[before:] {
		if w.Resource != "leases" {
			t.Errorf("an idle host was written: %s %s %s", w.Verb, w.Resource, w.Body)
		}
	}
}

func TestAnOldCRDIsSaidAndLivedWith(t *testing.T) {
	tests := map[string]struct {
		said bool
	}{
		"status.conditions":            {true},
		"status.hardware":              {true},
		"status.provisioningFailCount": {false}, // a zero is not missed
		"spec.architecture":            {false}, // only a status is compared
	}
	for field, tc := range tests {
		t.Run(field, func(t *testing.T) {
			s := newSite(t)
			s.api.Drop(field)
			s.start("a")
			s.apply("host-a")
			s.available("host-a")
			s.provisioned("host-a")
			if diff := cmp.Diff([]string{"registering", "inspecting", "preparing", "available", "provisioning", "provisioned"}, s.states("host-a")); diff != "" {
				t.Error(diff)
			}
			if status, metadata := s.writes("status"), s.writes(""); status > 12 || metadata > 8 {
				t.Errorf("%d writes of the status, %d of metadata", status, metadata)
			}
			if tc.said && !strings.Contains(s.event("FieldNotStored", "Warning").Message, field) {
				t.Error("the Event does not name the field")
			}
		})
	}
}

func TestAHostInANamespaceThatGoesCanGo(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a")
	s.known("host-a")
	s.api.Terminate(namespace)
	s.available("host-a")
	s.user.DeleteHost("host-a")
	s.loaded("host-a", "its deletion is known", lifecycle.Leaving)
	s.happens("host-a", lifecycle.Switched{Kind: event.PowerOff}, lifecycle.Removed{})
	kubetest.Eventually(t, "it is gone", func() bool { return len(s.api.Names("baremetalhosts")) == 0 })
}

func TestOthersKeysAreLeftAlone(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a", func(o *v1alpha1.BareMetalHost) {
		o.Labels = map[string]string{"cluster": "x"}
		o.Annotations = map[string]string{"capm3.metal3.io/unhealthy": "", v1alpha1.BlockMoveAnnotation: "", "reboot.metal3.io/capm3": `{"mode":"hard"}`}
	})
	s.available("host-a")
	s.provisioned("host-a")
	off := false
	s.happens("host-a", lifecycle.Observed{What: event.PowerChanged, On: &off})
	o := s.eventually("host-a", "off is shown", func(o *v1alpha1.BareMetalHost) bool { return !o.Status.PoweredOn })
	for _, key := range []string{"capm3.metal3.io/unhealthy", v1alpha1.BlockMoveAnnotation, "reboot.metal3.io/capm3"} {
		if _, there := o.Annotations[key]; !there {
			t.Errorf("%s is gone", key)
		}
	}
	for _, w := range s.api.Writes() {
		for _, theirs := range []string{"unhealthy", "block-move", "labels", "consumerRef"} {
			if w.Resource == "baremetalhosts" && w.Verb == "patch" && strings.Contains(w.Body, `"`+theirs) {
				t.Errorf("we wrote %s: %s", theirs, w.Body)
			}
		}
	}
}

func TestADeadLetterIsShownUntilItIsDealtWith(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a")
	s.available("host-a")
	if err := s.projector.Degrade(t.Context(), s.uids["host-a"], "an event is unreadable"); err != nil {
		t.Fatal(err)
	}
	s.provisioned("host-a")
	if c := condition(s.host("host-a"), "Degraded"); c == nil || c.Reason != "DeadLetter" || c.Message != "an event is unreadable" {
		t.Errorf("condition %+v", c)
	}
	kubetest.Eventually(t, "it is taken back", func() bool { return s.projector.Degrade(t.Context(), s.uids["host-a"], "") == nil })
	if c := condition(s.host("host-a"), "Degraded"); c != nil {
		t.Errorf("condition %+v", c)
	}
}
