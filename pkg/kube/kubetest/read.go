package kubetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"
)

func (s *Server) get(w http.ResponseWriter, q request) {
	s.mu.Lock()
	o, ok := s.objects[q.at]
	o = shown(o, q)
	s.mu.Unlock()
	if !ok {
		fail(w, http.StatusNotFound, "NotFound", q.at.name)
		return
	}
	answer(w, http.StatusOK, o)
}

func (s *Server) list(w http.ResponseWriter, q request) {
	s.mu.Lock()
	items := []any{}
	for at, o := range s.objects {
		if covers(q.at, at) {
			items = append(items, shown(o, q))
		}
	}
	rev := s.rev
	s.mu.Unlock()
	k := kinds()[q.at.resource]
	list := object{"apiVersion": k.version, "kind": k.kind + "List", "metadata": object{"resourceVersion": strconv.Itoa(rev)}, "items": items}
	if q.metadata {
		list["apiVersion"], list["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	answer(w, http.StatusOK, list)
}

// covers reports whether a list or watch of scope sees what is at.
func covers(scope, at path) bool {
	return scope.resource == at.resource && (scope.namespace == "" || scope.namespace == at.namespace)
}

// shown is the object as the request wants to see it.
func shown(o object, q request) object {
	if !q.metadata || o == nil {
		return o
	}
	return object{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o["metadata"]}
}

// watch streams changes from a revision on, or first all that is there and a
// bookmark, if that is asked for.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, q request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	s.mu.Lock()
	var first []any
	from := len(s.log)
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for at, o := range s.objects {
			if covers(q.at, at) {
				first = append(first, object{"type": "ADDED", "object": shown(o, q)})
			}
		}
		first = append(first, object{"type": "BOOKMARK", "object": s.bookmark(q)})
	} else if rev, err := strconv.Atoi(r.URL.Query().Get("resourceVersion")); err == nil {
		from = sort.Search(len(s.log), func(i int) bool { return s.log[i].rev > rev })
	}
	s.mu.Unlock()
	if send(w, first) {
		s.follow(w, r, q, from)
	}
}

func (s *Server) bookmark(q request) object {
	k := kinds()[q.at.resource]
	return shown(object{"apiVersion": k.version, "kind": k.kind, "metadata": object{
		"resourceVersion": strconv.Itoa(max(s.rev, 1)), "annotations": object{"k8s.io/initial-events-end": "true"},
	}}, q)
}

func (s *Server) follow(w http.ResponseWriter, r *http.Request, q request, from int) {
	for {
		s.mu.Lock()
		var next []any
		for ; from < len(s.log); from++ {
			if c := s.log[from]; covers(q.at, c.at) {
				next = append(next, object{"type": c.kind, "object": shown(c.o, q)})
			}
		}
		more := s.more
		s.mu.Unlock()
		if !send(w, next) {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

func send(w http.ResponseWriter, events []any) bool {
	for _, e := range events {
		if err := json.NewEncoder(w).Encode(e); err != nil {
			return false
		}
	}
	w.(http.Flusher).Flush()
	return true
}

// Object is an object as it is stored, decoded into into; false if there is none.
func (s *Server) Object(resource, namespace, name string, into any) bool {
	s.mu.Lock()
	o, ok := s.objects[path{resource, namespace, name}]
	s.mu.Unlock()
	if !ok {
		return false
	}
	if err := recode(o, into); err != nil {
		panic(fmt.Sprintf("decode %s %s/%s: %v", resource, namespace, name, err))
	}
	return true
}

// Names are the names of the objects of a resource, as NAMESPACE/NAME.
func (s *Server) Names(resource string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for at := range s.objects {
		if at.resource == resource {
			names = append(names, strings.TrimPrefix(at.namespace+"/"+at.name, "/"))
		}
	}
	return names
}

func recode(from, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
