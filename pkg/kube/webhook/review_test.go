package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
)

// fakeHosts are hosts without a cluster.
type fakeHosts struct {
	mu      sync.Mutex
	byUID   map[string]*v1alpha1.BareMetalHost
	changed []func(kube.Ref)
	unseen  bool
}

func newFakeHosts() *fakeHosts { return &fakeHosts{byUID: map[string]*v1alpha1.BareMetalHost{}} }

func (f *fakeHosts) OnChange(c func(kube.Ref)) { f.changed = append(f.changed, c) }

func (f *fakeHosts) Get(uid string) *v1alpha1.BareMetalHost {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byUID[uid]
}

func (f *fakeHosts) Ready(context.Context) error {
	if f.unseen {
		return errors.New("not listed")
	}
	return nil
}

func (f *fakeHosts) put(o *v1alpha1.BareMetalHost) {
	f.mu.Lock()
	f.byUID[string(o.UID)] = o
	f.mu.Unlock()
	f.tell(o)
}

func (f *fakeHosts) drop(o *v1alpha1.BareMetalHost) {
	f.mu.Lock()
	delete(f.byUID, string(o.UID))
	f.mu.Unlock()
	f.tell(o)
}

func (f *fakeHosts) tell(o *v1alpha1.BareMetalHost) {
	for _, c := range f.changed {
		c(kube.RefOf(o))
	}
}

// newHost is a host in which nothing is wrong, with changes.
func newHost(name string, changes ...func(*v1alpha1.BareMetalHost)) *v1alpha1.BareMetalHost {
	h := &v1alpha1.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID("uid-" + name)},
		Spec:       v1alpha1.BareMetalHostSpec{Online: true, BMC: v1alpha1.BMCDetails{Address: "redfish://" + name + ".example/redfish/v1/Systems/1", CredentialsName: "bmc"}},
	}
	for _, change := range changes {
		change(h)
	}
	return h
}

func address(a string) func(*v1alpha1.BareMetalHost) {
	return func(h *v1alpha1.BareMetalHost) { h.Spec.BMC.Address = a }
}

func nics(n ...v1alpha1.NetworkInterface) func(*v1alpha1.BareMetalHost) {
	return func(h *v1alpha1.BareMetalHost) { h.Spec.NetworkInterfaces = n }
}

func used(h *v1alpha1.BareMetalHost) {
	h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Metal3Machine", Namespace: "lab", Name: "m"}
}

func annotated(key, value string) func(*v1alpha1.BareMetalHost) {
	return func(h *v1alpha1.BareMetalHost) { metav1.SetMetaDataAnnotation(&h.ObjectMeta, key, value) }
}

func newAttachment(mode v1alpha1.SwitchPortMode, vlans ...string) *v1alpha1.HostNetworkAttachment {
	return &v1alpha1.HostNetworkAttachment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "storage"},
		Spec:       v1alpha1.HostNetworkAttachmentSpec{Mode: mode, NativeVLAN: 1, AllowedVLANs: vlans},
	}
}

func testServer(t *testing.T, cfg Config, h hosts) *Server {
	t.Helper()
	return newServer(cfg, h, Options{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: time.Now})
}

// question is what the API asks; before and after may be nil.
func question(t *testing.T, operation admissionv1.Operation, before, after any) []byte {
	t.Helper()
	q := &admissionv1.AdmissionRequest{UID: "question", Operation: operation, Namespace: "lab", Name: "one"}
	if before != nil {
		q.OldObject.Raw = encode(t, before)
	}
	if after != nil {
		q.Object.Raw = encode(t, after)
	}
	return encode(t, admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: q,
	})
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func ask(t *testing.T, s *Server, kind string, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/validate-metal3-io-v1alpha1-"+strings.ToLower(kind), bytes.NewReader(body))
	s.handlers.ServeHTTP(w, r)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if review.Response == nil || review.Response.UID != "question" || review.Kind != "AdmissionReview" {
		t.Fatalf("no answer to the question: %s", w.Body)
	}
	return review.Response
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	uses := v1alpha1.NetworkInterface{Name: "eth0", HostNetworkAttachment: v1alpha1.HostNetworkAttachmentRef{Name: "storage"}}
	there := newHost("there", nics(uses), func(h *v1alpha1.BareMetalHost) { h.Spec.BootMACAddress = "00:00:5e:00:53:01" })
	host, attachment := "BareMetalHost", "HostNetworkAttachment"
	const create, update, del = admissionv1.Create, admissionv1.Update, admissionv1.Delete
	tests := map[string]struct {
		kind          string
		operation     admissionv1.Operation
		before, after any
		guard, unseen bool

		code     int32 // 0 for allowed
		fields   []string
		says     string
		warnings []string // a part of each
	}{
		"a host": {kind: host, operation: create, after: newHost("a")},
		"a host with two faults": {
			kind: host, operation: create, after: newHost("a", address("gopher://x"), annotated("inspect.metal3.io", "maybe")),
			code: 422, fields: []string{"spec.bmc.address", "metadata.annotations[inspect.metal3.io]"}, says: "invalid value for the inspect.metal3.io annotation",
		},
		"a host on the BMC of another one": {
			kind: host, operation: create, after: newHost("a", address(there.Spec.BMC.Address)), warnings: []string{"host lab/there has the same BMC"},
		},
		"a host with a misspelt annotation": {
			kind: host, operation: create, after: newHost("a", annotated("inspect.metal3.io/hardware", "")), warnings: []string{"is not known and has no effect"},
		},
		"a host changes": {kind: host, operation: update, before: newHost("a"), after: newHost("a", used)},
		"a host changes what must stay": {
			kind: host, operation: update, before: newHost("a"), after: newHost("a", address("redfish://other.example")),
			code: 422, fields: []string{"spec.bmc.address"}, says: "BMC address can not be changed",
		},
		"a label is added to a host of which was warned": {
			kind: host, operation: update, before: newHost("a", annotated("inspect.metal3.io/x", "")),
			after: newHost("a", annotated("inspect.metal3.io/x", ""), func(h *v1alpha1.BareMetalHost) { h.Labels = map[string]string{"a": "b"} }),
		},
		"the specification of a host of which was warned changes": {
			kind: host, operation: update, before: newHost("a", annotated("inspect.metal3.io/x", "")),
			after: newHost("a", annotated("inspect.metal3.io/x", ""), used), warnings: []string{"inspect.metal3.io/x is not known"},
		},
		"a used host is deleted":             {kind: host, operation: del, before: newHost("a", used)},
		"an unused host is deleted, guarded": {kind: host, operation: del, before: newHost("a"), guard: true},
		"a used host is deleted, guarded": {
			kind: host, operation: del, before: newHost("a", used), guard: true,
			code: 403, fields: []string{"spec.consumerRef"}, says: "the host is used by Metal3Machine lab/m",
		},
		"an attachment": {kind: attachment, operation: create, after: newAttachment("access")},
		"an attachment with a fault": {
			kind: attachment, operation: create, after: newAttachment("access", "1"), code: 422, fields: []string{"spec.allowedVLANs"}, says: "cannot be specified for access mode",
		},
		"an attachment that is used changes": {
			kind: attachment, operation: update, before: newAttachment("access"), after: newAttachment("trunk"),
			code: 422, fields: []string{"spec"}, says: "is immutable while referenced by BMH interfaces: lab/there[eth0]",
		},
		"an attachment that is used gets a label": {kind: attachment, operation: update, before: newAttachment("access"), after: newAttachment("access")},
		"an attachment that is used is deleted": {
			kind: attachment, operation: del, before: newAttachment("access"),
			code: 403, fields: []string{"metadata"}, says: "cannot delete attachment while referenced", warnings: []string{"This attachment is referenced by: lab/there[eth0]"},
		},
		"an attachment is deleted before the hosts are known": {
			kind: attachment, operation: del, before: newAttachment("access"), unseen: true, code: 503, says: "the hosts have not been listed yet",
		},
		"an attachment gets a label before the hosts are known": {
			kind: attachment, operation: update, before: newAttachment("access"), after: newAttachment("access"), unseen: true,
		},
		"a subscription without a destination": {
			kind: "BMCEventSubscription", operation: create, after: &v1alpha1.BMCEventSubscription{Spec: v1alpha1.BMCEventSubscriptionSpec{HostName: "a"}},
			code: 422, fields: []string{"spec.destination"}, says: "destination cannot be empty",
		},
		"a policy that lets nobody in": {
			kind: "HostDeployPolicy", operation: create, after: &v1alpha1.HostDeployPolicy{}, warnings: []string{"spec.hostClaimNamespaces is missing"},
		},
		"nothing": {kind: host, operation: create},
		"an object of another shape": {
			kind: host, operation: create, after: map[string]any{"spec": "text"}, code: 400, says: "read the object",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFakeHosts()
			h.unseen = tt.unseen
			s := testServer(t, Config{GuardDeletion: tt.guard}, h)
			if !tt.unseen {
				h.put(there)
			}
			got := ask(t, s, tt.kind, question(t, tt.operation, tt.before, tt.after))
			checkAnswer(t, got, tt.code, tt.fields, tt.says, tt.warnings)
		})
	}
}

func checkAnswer(t *testing.T, got *admissionv1.AdmissionResponse, code int32, fields []string, says string, warnings []string) {
	t.Helper()
	if got.Allowed != (code == 0) {
		t.Errorf("allowed: %t, %v", got.Allowed, got.Result)
	}
	var gotFields []string
	if r := got.Result; r != nil {
		if r.Code != code || !strings.Contains(r.Message, says) {
			t.Errorf("%d %q, want %d …%s…", r.Code, r.Message, code, says)
		}
		if r.Details != nil {
			for _, c := range r.Details.Causes {
				gotFields = append(gotFields, c.Field)
			}
		}
	}
	if diff := cmp.Diff(fields, gotFields); diff != "" {
		t.Errorf("fields (-want +got)\n%s", diff)
	}
	same := slices.EqualFunc(warnings, got.Warnings, func(want, got string) bool { return strings.Contains(got, want) })
	if !same {
		t.Errorf("warnings %q, want %q", got.Warnings, warnings)
	}
}

func TestWhatIsNoQuestionIsRefused(t *testing.T) {
	t.Parallel()
	s := testServer(t, Config{}, newFakeHosts())
	for name, tt := range map[string]struct{ body, says string }{
		"no JSON":      {"{", "read the admission review"},
		"another kind": {`{"apiVersion":"v1","kind":"Pod"}`, "want an AdmissionReview"},
		"old version":  {`{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{}}`, "want an AdmissionReview"},
		"no request":   {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, "has no request"},
		"too much":     {`"` + strings.Repeat("x", maxReview) + `"`, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			s.handlers.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/validate-metal3-io-v1alpha1-baremetalhost", strings.NewReader(tt.body)))
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), tt.says) {
				t.Errorf("%d %s, want 400 and %q", w.Code, w.Body, tt.says)
			}
		})
	}
}

// Whatever is sent, the webhook answers and does not fall over.
func FuzzReview(f *testing.F) {
	for _, h := range hooks(nil, false) {
		f.Add(h.path(), []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE","object":{"spec":{}},"oldObject":{"spec":{}}}}`))
	}
	s := newServer(Config{GuardDeletion: true}, newFakeHosts(), Options{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: time.Now})
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		if !slices.ContainsFunc(hooks(nil, false), func(h hook) bool { return h.path() == path }) {
			return
		}
		w := httptest.NewRecorder()
		s.handlers.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
