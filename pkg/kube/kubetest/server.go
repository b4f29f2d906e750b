package kubetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// Server is a running API.
type Server struct {
	http *httptest.Server

	mu       sync.Mutex
	objects  map[path]object
	log      []change // all changes, for watches that begin in the past
	rev      int
	uids     int
	more     chan struct{} // closed and replaced at each change
	writes   []Write
	fault    func(Write) int
	lost     func(Write) bool
	drops    []string
	unserved []string
	closing  map[string]bool // namespaces that are being deleted
}

// object is one object as JSON.
type object = map[string]any

// path says where an object is.
type path struct{ resource, namespace, name string }

// change is one change of an object, as a watch tells it.
type change struct {
	kind string // ADDED, MODIFIED or DELETED
	at   path
	rev  int
	o    object
}

// Write is one request that would change something.
type Write struct {
	Verb        string // create, update, patch or delete
	Resource    string // secrets, events, baremetalhosts, …
	Subresource string // status, or ""
	Namespace   string
	Name        string
	Body        string
	Code        int
}

// New starts an API with one namespace, "default", and stops it with the test.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{objects: map[path]object{}, more: make(chan struct{}), closing: map[string]bool{}}
	s.http = httptest.NewServer(s)
	tb.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Config is how a client reaches the API.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.http.URL} }

// Kubeconfig is the same as a kubeconfig file's text.
func (s *Server) Kubeconfig() string {
	return strings.ReplaceAll(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: URL}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`, "URL", s.http.URL)
}

// Writes are the writes so far that the API accepted or refused.
func (s *Server) Writes() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Write(nil), s.writes...)
}

// Fault makes f answer each write in the API's place: with the status code
// that it returns, if that is not 0.
func (s *Server) Fault(f func(Write) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Lose makes the API break the connection instead of answering a write that it has
// carried out, if f says so.
func (s *Server) Lose(f func(Write) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = f
}

// Drop makes the API lose a field whenever it is written, as a CRD does that
// does not have it: "status.conditions".
func (s *Server) Drop(field string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops = append(s.drops, field)
}

// Unserve makes the API one that does not know a kind, as where its CRD is missing.
func (s *Server) Unserve(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unserved = append(s.unserved, resource)
}

func (s *Server) serves(resource string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.Contains(s.unserved, resource)
}

// Purge removes an object at once, as somebody does who edits its finalizers away.
func (s *Server) Purge(resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := path{resource, namespace, name}
	if o, ok := s.objects[at]; ok {
		s.rev++
		s.drop(at, o)
	}
}

// Terminate begins the deletion of a namespace: it takes nothing new.
func (s *Server) Terminate(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing[namespace] = true
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, ok := parse(r)
	switch {
	case !ok || !s.serves(q.at.resource):
		fail(w, http.StatusNotFound, "NotFound", r.URL.Path)
	case r.URL.Query().Get("watch") == "true":
		s.watch(w, r, q)
	case r.Method == http.MethodGet && q.at.name == "":
		s.list(w, q)
	case r.Method == http.MethodGet:
		s.get(w, q)
	default:
		s.write(w, r, q)
	}
}

// request is what a URL asks for.
type request struct {
	at          path
	subresource string
	metadata    bool // the metadata alone
}

// parse reads /api/v1/…, /apis/GROUP/VERSION/….
func parse(r *http.Request) (request, bool) {
	q := request{metadata: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return q, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		q.at.namespace, parts = parts[1], parts[2:]
	}
	q.at.resource = parts[0]
	if len(parts) > 1 {
		q.at.name = parts[1]
	}
	if len(parts) > 2 {
		q.subresource = parts[2]
	}
	return q, kinds()[q.at.resource].kind != ""
}

// kind is what the API knows of a kind of object.
type kind struct {
	version, kind string
	hasStatus     bool // status is a subresource
}

func kinds() map[string]kind {
	return map[string]kind{
		"secrets":               {version: "v1", kind: "Secret"},
		"events":                {version: "v1", kind: "Event"},
		"leases":                {version: "coordination.k8s.io/v1", kind: "Lease"},
		"baremetalhosts":        {version: "metal3.io/v1alpha1", kind: "BareMetalHost", hasStatus: true},
		"bmceventsubscriptions": {version: "metal3.io/v1alpha1", kind: "BMCEventSubscription", hasStatus: true},
		"dataimages":            {version: "metal3.io/v1alpha1", kind: "DataImage", hasStatus: true},
		"hardwaredata":          {version: "metal3.io/v1alpha1", kind: "HardwareData"},
		"preprovisioningimages": {version: "metal3.io/v1alpha1", kind: "PreprovisioningImage", hasStatus: true},

		"hostfirmwaresettings":   {version: "metal3.io/v1alpha1", kind: "HostFirmwareSettings", hasStatus: true},
		"hostfirmwarecomponents": {version: "metal3.io/v1alpha1", kind: "HostFirmwareComponents", hasStatus: true},
		"hostupdatepolicies":     {version: "metal3.io/v1alpha1", kind: "HostUpdatePolicy", hasStatus: true},
		"firmwareschemas":        {version: "metal3.io/v1alpha1", kind: "FirmwareSchema"},
	}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, code int, reason, message string) {
	answer(w, code, status(code, reason, message))
}

func status(code int, reason, message string) object {
	o := object{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
	switch reason {
	case "NamespaceTerminating":
		o["reason"] = "Forbidden"
		o["details"] = object{"causes": []any{object{"reason": reason, "message": message}}}
	case "Invalid": // the message is the field
		o["details"] = object{"causes": []any{object{"reason": "FieldValueInvalid", "field": message}}}
	}
	return o
}

// Fill stores many Secrets at once.
func (s *Server) Fill(n int, secret func(int) *corev1.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range n {
		var o object
		if err := recode(secret(i), &o); err != nil {
			panic(err) // of our own types
		}
		m := meta(o)
		o["apiVersion"], o["kind"] = "v1", "Secret"
		s.store("ADDED", path{"secrets", fmt.Sprint(m["namespace"]), fmt.Sprint(m["name"])}, o)
	}
}
