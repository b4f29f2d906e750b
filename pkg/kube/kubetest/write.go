package kubetest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// refusal is an answer other than success.
type refusal struct {
	code            int
	reason, message string
}

func conflict(why string) *refusal { return &refusal{http.StatusConflict, "Conflict", why} }

func (s *Server) write(w http.ResponseWriter, r *http.Request, q request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	record := Write{
		Verb: map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[r.Method], Resource: q.at.resource,
		Subresource: q.subresource, Namespace: q.at.namespace, Name: q.at.name, Body: string(raw),
	}
	s.mu.Lock()
	fault, lost := s.fault, s.lost
	s.mu.Unlock()
	if fault != nil {
		if record.Code = fault(record); record.Code != 0 {
			s.note(record)
			fail(w, record.Code, reasonOf(record.Code), "fault of the test")
			return
		}
	}
	o, refused := s.carryOut(q, r, raw, &record)
	if refused != nil {
		fail(w, refused.code, refused.reason, refused.message)
		return
	}
	if lost != nil && lost(record) {
		panic(http.ErrAbortHandler)
	}
	answer(w, record.Code, o)
}

// carryOut makes a write and notes it, in one: so writes are noted in the order in
// which they were made.
func (s *Server) carryOut(q request, r *http.Request, raw []byte, record *Write) (object, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, refused := s.change(q, r, raw)
	o = shown(o, q)
	switch {
	case refused != nil:
		record.Code = refused.code
	case record.Verb == "create":
		record.Code, record.Name = http.StatusCreated, meta(o)["name"].(string)
	default:
		record.Code = http.StatusOK
	}
	s.writes = append(s.writes, *record)
	return o, refused
}

func reasonOf(code int) string {
	return map[int]string{409: "Conflict", 404: "NotFound", 403: "Forbidden", 500: "InternalError", 503: "ServiceUnavailable", 429: "TooManyRequests"}[code]
}

func (s *Server) note(w Write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, w)
}

// change carries out a write; the caller holds the lock.
func (s *Server) change(q request, r *http.Request, raw []byte) (object, *refusal) {
	old := s.objects[q.at]
	switch {
	case r.Method == http.MethodPost:
		return s.create(q, raw)
	case old == nil:
		return nil, &refusal{http.StatusNotFound, "NotFound", q.at.name + " not found"}
	case r.Method == http.MethodDelete:
		return s.remove(q, old)
	}
	o, err := changed(q, old, r.Header.Get("Content-Type"), raw)
	if err != nil {
		return nil, &refusal{http.StatusUnprocessableEntity, "Invalid", err.Error()}
	}
	return s.update(q, old, o)
}

// changed is the object that a PUT or PATCH asks for.
func changed(q request, old object, contentType string, raw []byte) (object, error) {
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch {
	case strings.HasPrefix(contentType, "application/merge-patch+json"):
		after, err = jsonpatch.MergePatch(before, raw)
	case strings.HasPrefix(contentType, "application/strategic-merge-patch+json"):
		after, err = strategicpatch.StrategicMergePatch(before, raw, corev1.Secret{})
	default:
		return decode(q, raw)
	}
	if err != nil {
		return nil, err
	}
	var o object
	return o, json.Unmarshal(after, &o)
}

// decode reads an object in JSON or protobuf.
func decode(q request, raw []byte) (object, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	typed, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	var o object
	if err := recode(typed, &o); err != nil {
		return nil, err
	}
	k := kinds()[q.at.resource]
	o["apiVersion"], o["kind"] = k.version, k.kind
	return o, nil
}

func (s *Server) create(q request, raw []byte) (object, *refusal) {
	o, err := decode(q, raw)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "BadRequest", err.Error()}
	}
	m := meta(o)
	if s.closing[q.at.namespace] {
		return nil, &refusal{http.StatusForbidden, string(corev1.NamespaceTerminatingCause), "namespace " + q.at.namespace + " is being terminated"}
	}
	at := path{q.at.resource, q.at.namespace, fmt.Sprint(m["name"])}
	if s.objects[at] != nil {
		return nil, &refusal{http.StatusConflict, "AlreadyExists", at.name + " exists"}
	}
	s.uids++
	m["namespace"], m["uid"], m["creationTimestamp"] = at.namespace, fmt.Sprintf("00000000-0000-4000-8000-%012d", s.uids), now()
	if kinds()[at.resource].hasStatus {
		delete(o, "status")
		m["generation"] = 1
	}
	s.store("ADDED", at, o)
	return o, nil
}

func (s *Server) update(q request, old, o object) (object, *refusal) {
	m, was := meta(o), meta(old)
	if v, given := m["resourceVersion"]; given && v != was["resourceVersion"] {
		return nil, conflict("the object has been modified")
	}
	if v, given := m["uid"]; given && v != was["uid"] {
		return nil, &refusal{http.StatusUnprocessableEntity, "Invalid", "metadata.uid"}
	}
	for _, kept := range []string{"uid", "creationTimestamp", "deletionTimestamp", "generation", "namespace", "name"} {
		if v, ok := was[kept]; ok {
			m[kept] = v
		}
	}
	if k := kinds()[q.at.resource]; k.hasStatus {
		o = separate(q.subresource, old, o)
		if !reflect.DeepEqual(old["spec"], o["spec"]) {
			meta(o)["generation"] = number(was["generation"]) + 1
		}
	}
	if field := lacks(q, o); field != "" {
		return nil, &refusal{http.StatusUnprocessableEntity, "Invalid", field}
	}
	s.prune(o)
	if m = meta(o); m["deletionTimestamp"] != nil && empty(m["finalizers"]) {
		s.rev++
		m["resourceVersion"] = strconv.Itoa(s.rev)
		s.drop(q.at, o)
		return o, nil
	}
	m["resourceVersion"] = was["resourceVersion"]
	if same(old, o) {
		return old, nil // as the API does, it writes nothing then
	}
	s.store("MODIFIED", q.at, o)
	return o, nil
}

// separate takes the status from a write of the status, and all but the status
// from any other.
func separate(subresource string, old, o object) object {
	if subresource == "status" {
		o = object{"apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": maps.Clone(meta(old)), "spec": old["spec"], "status": o["status"]}
		return o
	}
	delete(o, "status")
	if v, ok := old["status"]; ok {
		o["status"] = v
	}
	return o
}

// lacks is a field that the CRD requires and the status does not have.
func lacks(q request, o object) string {
	status, _ := o["status"].(object)
	if q.at.resource != "baremetalhosts" || q.subresource != "status" {
		return ""
	}
	for _, name := range []string{"operationalStatus", "errorMessage", "poweredOn", "errorCount", "provisioning"} {
		if status[name] == nil {
			return "status." + name
		}
	}
	for _, name := range []string{"state", "ID"} {
		if p, _ := status["provisioning"].(object); p[name] == nil {
			return "status.provisioning." + name
		}
	}
	return ""
}

func (s *Server) remove(q request, old object) (object, *refusal) {
	if empty(meta(old)["finalizers"]) {
		s.rev++
		s.drop(q.at, old)
		return old, nil
	}
	if meta(old)["deletionTimestamp"] != nil {
		return old, nil
	}
	var o object
	_ = recode(old, &o)
	meta(o)["deletionTimestamp"] = now()
	if g, ok := meta(o)["generation"]; ok {
		meta(o)["generation"] = number(g) + 1
	}
	s.store("MODIFIED", q.at, o)
	return o, nil
}

func (s *Server) drop(at path, o object) {
	delete(s.objects, at)
	s.tell(change{"DELETED", at, s.rev, o})
}

func (s *Server) store(kind string, at path, o object) {
	s.prune(o)
	s.rev++
	meta(o)["resourceVersion"] = strconv.Itoa(s.rev)
	s.objects[at] = o
	s.tell(change{kind, at, s.rev, o})
}

func (s *Server) tell(c change) {
	s.log = append(s.log, c)
	close(s.more)
	s.more = make(chan struct{})
}

// prune loses the fields that the CRD does not have. What it changes it has copied
// before: an older version of the object may be on its way to somebody.
func (s *Server) prune(o object) {
	for _, field := range s.drops {
		at := o
		parts := strings.Split(field, ".")
		for _, p := range parts[:len(parts)-1] {
			inner, ok := at[p].(object)
			if !ok {
				at = nil
				break
			}
			at[p] = maps.Clone(inner)
			at = at[p].(object)
		}
		delete(at, parts[len(parts)-1])
	}
}

func meta(o object) object {
	m, ok := o["metadata"].(object)
	if !ok {
		m = object{}
		o["metadata"] = m
	}
	return m
}

func empty(list any) bool {
	l, _ := list.([]any)
	return len(l) == 0
}

func same(a, b object) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func number(v any) int {
	switch n := v.(type) {
	case int:
		return n
	case float64:
		return int(n)
	default:
		return 0
	}
}

// now is the time as metadata have it.
func now() string {
	return time.Now().UTC().Format(time.RFC3339) //nolint:forbidigo // an API has the machine's clock
}
