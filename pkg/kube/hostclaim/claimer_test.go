package hostclaim

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// outcome is what one look at claim x made of it and of host a.
type outcome struct {
	Reason, Ready string // of the conditions Associated and Ready
	Chosen        string
	Finalizer     bool
	Recorded      string // the host in the status
	Consumer      string // of host a
}

func chosen(host string) func(*v1alpha1.HostClaim) {
	return func(c *v1alpha1.HostClaim) {
		c.Annotations = map[string]string{v1alpha1.ChosenHostAnnotation: "lab/" + host}
		c.Finalizers = []string{v1alpha1.HostClaimFinalizer}
	}
}

func recorded(host string) func(*v1alpha1.HostClaim) {
	return func(c *v1alpha1.HostClaim) {
		c.Status.BareMetalHost = &v1alpha1.ObjectReference{Namespace: "lab", Name: host}
		c.Finalizers = []string{v1alpha1.HostClaimFinalizer}
	}
}

func leaving(c *v1alpha1.HostClaim) {
	c.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	c.Finalizers = []string{v1alpha1.HostClaimFinalizer}
}

func movedOff(c *v1alpha1.HostClaim) {
	leaving(c)
	c.Annotations = map[string]string{v1alpha1.DeleteForMoveAnnotation: ""}
}

func old(c *v1alpha1.HostClaim) { c.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour)) }

func young(c *v1alpha1.HostClaim) { c.CreationTimestamp = metav1.Now() }

func usedBy(name string) func(*v1alpha1.BareMetalHost) {
	return func(h *v1alpha1.BareMetalHost) {
		h.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: "metal3.io/v1alpha1", Kind: "HostClaim", Namespace: "team", Name: name}
	}
}

func busy(h *v1alpha1.BareMetalHost) { h.Status.Provisioning.State = v1alpha1.StateProvisioned }

func TestOneLook(t *testing.T) {
	t.Parallel()
	const free, has = "NoBareMetalHost", "BareMetalHostAssociated"
	bound := outcome{Reason: has, Ready: "Unknown", Chosen: "lab/a", Finalizer: true, Recorded: "lab/a", Consumer: "x"}
	for name, tt := range map[string]struct {
		claim   []func(*v1alpha1.HostClaim)
		hosts   []*v1alpha1.BareMetalHost
		refuses bool
		want    outcome
		says    string
	}{
		"a free host is taken":          {hosts: []*v1alpha1.BareMetalHost{newHost("a")}, want: bound},
		"there is none":                 {want: outcome{Reason: free, Ready: "False"}, says: "No available host found"},
		"a host that is noted is taken": {claim: []func(*v1alpha1.HostClaim){chosen("a")}, hosts: []*v1alpha1.BareMetalHost{newHost("a"), newHost("b")}, want: bound},
		"a host that has us is ours":    {claim: []func(*v1alpha1.HostClaim){chosen("a")}, hosts: []*v1alpha1.BareMetalHost{newHost("a", usedBy("x"), busy)}, want: bound},
		"a host that has us is ours without a note": {
			hosts: []*v1alpha1.BareMetalHost{newHost("a", usedBy("x"), busy), newHost("b")}, want: outcome{Reason: has, Ready: "Unknown", Recorded: "lab/a", Consumer: "x"},
		},
		"a host that somebody was faster with is left to them": {
			claim: []func(*v1alpha1.HostClaim){chosen("a")}, hosts: []*v1alpha1.BareMetalHost{newHost("a", usedBy("y"))},
			want: outcome{Reason: free, Ready: "False", Finalizer: true, Consumer: "y"},
		},
		"a host that is no longer available is not taken": {
			claim: []func(*v1alpha1.HostClaim){chosen("a")}, hosts: []*v1alpha1.BareMetalHost{newHost("a", busy)},
			want: outcome{Reason: free, Ready: "False", Finalizer: true},
		},
		"a host that the status tells of is taken back": {
			claim: []func(*v1alpha1.HostClaim){recorded("a")}, hosts: []*v1alpha1.BareMetalHost{newHost("a", busy)},
			want: outcome{Reason: has, Ready: "Unknown", Finalizer: true, Recorded: "lab/a", Consumer: "x"},
		},
		"a host that the status tells of and another one has": {
			claim: []func(*v1alpha1.HostClaim){recorded("a")}, hosts: []*v1alpha1.BareMetalHost{newHost("a", usedBy("y")), newHost("b")},
			want: outcome{Reason: "BareMetalHostNotSynchronized", Ready: "False", Finalizer: true, Recorded: "lab/a", Consumer: "y"}, says: "is used by HostClaim team/y now",
		},
		"a host that has gone": {
			claim: []func(*v1alpha1.HostClaim){recorded("a")}, hosts: []*v1alpha1.BareMetalHost{newHost("b")},
			want: outcome{Reason: "MissingBareMetalHost", Ready: "False", Finalizer: true, Recorded: "lab/a"}, says: "Host lab/a has gone",
		},
		"a host that is not there yet": {
			claim: []func(*v1alpha1.HostClaim){chosen("a"), young}, hosts: []*v1alpha1.BareMetalHost{newHost("b")},
			want: outcome{Reason: "MissingBareMetalHost", Ready: "False", Chosen: "lab/a", Finalizer: true}, says: "is not there yet",
		},
		"a host that never came": {
			claim: []func(*v1alpha1.HostClaim){chosen("a"), old}, hosts: []*v1alpha1.BareMetalHost{newHost("b")},
			want: outcome{Reason: has, Ready: "Unknown", Chosen: "lab/b", Finalizer: true, Recorded: "lab/b"},
		},
		"a host that the API does not let go": {
			hosts: []*v1alpha1.BareMetalHost{newHost("a")}, refuses: true,
			want: outcome{Reason: "BareMetalHostNotSynchronized", Ready: "False", Finalizer: true}, says: "can not be taken: refused: not today",
		},
		"the end of a claim gives its host back": {
			claim: []func(*v1alpha1.HostClaim){chosen("a"), leaving}, hosts: []*v1alpha1.BareMetalHost{newHost("a", usedBy("x"))},
			want: outcome{Reason: "HostClaimDeleting", Ready: "False"},
		},
		"the end of a claim leaves another's host alone": {
			claim: []func(*v1alpha1.HostClaim){recorded("a"), leaving}, hosts: []*v1alpha1.BareMetalHost{newHost("a", usedBy("y"))},
			want: outcome{Reason: "HostClaimDeleting", Ready: "False", Recorded: "lab/a", Consumer: "y"},
		},
		"the end of a claim whose host has gone": {
			claim: []func(*v1alpha1.HostClaim){recorded("a"), leaving}, want: outcome{Reason: "HostClaimDeleting", Ready: "False", Recorded: "lab/a"},
		},
		"the end of a claim that can not give its host back": {
			claim: []func(*v1alpha1.HostClaim){chosen("a"), leaving}, hosts: []*v1alpha1.BareMetalHost{newHost("a", usedBy("x"))}, refuses: true,
			want: outcome{Reason: "HostClaimDeletionFailed", Ready: "False", Chosen: "lab/a", Finalizer: true, Consumer: "x"}, says: "could not be given back",
		},
		"a claim that lives in another cluster keeps its host": {
			claim: []func(*v1alpha1.HostClaim){recorded("a"), movedOff}, hosts: []*v1alpha1.BareMetalHost{newHost("a", usedBy("x"))},
			want: outcome{Finalizer: true, Recorded: "lab/a", Consumer: "x"},
		},
		"a selector that can not be read": {
			claim: []func(*v1alpha1.HostClaim){func(c *v1alpha1.HostClaim) {
				c.Spec.HostSelector.MatchExpressions = []v1alpha1.HostSelectorRequirement{{Key: "rack", Operator: "near"}}
			}},
			hosts: []*v1alpha1.BareMetalHost{newHost("a")}, want: outcome{Reason: free, Ready: "False"}, says: "The selector can not be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.policies = []*v1alpha1.HostDeployPolicy{newPolicy("lab", everybody())}
				for _, h := range tt.hosts {
					w.putHost(h)
				}
				w.refuses[key("lab", "a")] = tt.refuses
				w.putClaim(newClaim("x", tt.claim...))
				c := &claimer{seen: cached{behind{w, 0}}, store: w, now: time.Now, random: func(int) int { return 0 }}
				if _, err := c.look(t.Context(), key("team", "x")); err != nil {
					t.Fatal(err)
				}
				got, message := result(t, w)
				if diff := cmp.Diff(tt.want, got); diff != "" || !strings.Contains(message, tt.says) {
					t.Errorf("(-want +got)\n%s\n%q does not say %q", diff, message, tt.says)
				}
				before := w.writes
				if _, err := c.look(t.Context(), key("team", "x")); err != nil {
					t.Fatal(err)
				}
				if w.writes != before && !tt.refuses {
					t.Errorf("another look makes %d more writes", w.writes-before)
				}
			})
		})
	}
}

func result(t *testing.T, w *world) (outcome, string) {
	t.Helper()
	claim := w.claim(t, "x")
	n := noteOf(claim)
	o := outcome{Finalizer: n.finalizer}
	if n.chosen.Name != "" {
		o.Chosen = n.chosen.String()
	}
	if ref := claim.Status.BareMetalHost; ref != nil {
		o.Recorded = ref.Namespace + "/" + ref.Name
	}
	if h, err := w.Host(t.Context(), key("lab", "a")); err == nil && h.Spec.ConsumerRef != nil {
		o.Consumer = h.Spec.ConsumerRef.Name
	}
	message := ""
	if c := meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.AssociatedCondition); c != nil {
		o.Reason, message = c.Reason, c.Message
	}
	if c := meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.ReadyCondition); c != nil {
		o.Ready = string(c.Status)
	}
	return o, message
}

// What a claim wants beyond a host is not brought there, and it says so.
func TestWhatIsNotBuiltIsSaid(t *testing.T) {
	t.Parallel()
	status := statusOf(newClaim("x"), has(newHost("a")), time.Now())
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.SynchronizedCondition)
	if c == nil || c.Status != metav1.ConditionUnknown || c.Reason != v1alpha1.NotSupportedReason || !strings.Contains(c.Message, "Set them on the host") {
		t.Errorf("%+v", c)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	condition := func(kind string, value metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: value, Message: kind + " text"}
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for name, tt := range map[string]struct {
		associated, synchronized, provisioned metav1.ConditionStatus
		want                                  metav1.ConditionStatus
		reason                                string
	}{
		"all is well":           {yes, yes, yes, yes, "InfoReported"},
		"one is not known":      {yes, unknown, yes, unknown, "UnknownReported"},
		"one is not there":      {yes, yes, "", unknown, "UnknownReported"},
		"one is wrong":          {no, unknown, yes, no, "IssuesReported"},
		"nothing is known":      {"", "", "", unknown, "UnknownReported"},
		"the last one is wrong": {yes, yes, no, no, "IssuesReported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var conditions []metav1.Condition
			for kind, value := range map[string]metav1.ConditionStatus{"Associated": tt.associated, "Synchronized": tt.synchronized, "Provisioned": tt.provisioned} {
				if value != "" {
					conditions = append(conditions, condition(kind, value))
				}
			}
			if value, reason, _ := summary(conditions); value != tt.want || reason != tt.reason {
				t.Errorf("%s %s, want %s %s", value, reason, tt.want, tt.reason)
			}
		})
	}
}

func TestLabelsThatCanNotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.policies = []*v1alpha1.HostDeployPolicy{newPolicy("lab", &v1alpha1.HostClaimNamespaces{HasLabels: []v1alpha1.NameValuePair{{Name: "tier"}}})}
	w.labelsError = errors.New("forbidden")
	w.putHost(newHost("a"))
	w.putClaim(newClaim("x"))
	c := &claimer{seen: cached{behind{w, 0}}, store: w, now: time.Now, random: func(int) int { return 0 }}
	if _, err := c.look(t.Context(), key("team", "x")); err != nil {
		t.Fatal(err)
	}
	if got, message := result(t, w); got.Reason != v1alpha1.NoBareMetalHostReason || !strings.Contains(message, "The labels of namespace team can not be read: forbidden") {
		t.Errorf("%+v %s", got, message)
	}
}
