package bmcsim

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// obj is the body of a resource.
type obj = map[string]any

// link points to another resource. It has a type of its own so that expansion
// can tell it from any other object.
type link struct {
	ID string `json:"@odata.id"`
}

// answer is what a handler gives back.
type answer struct {
	status   int
	body     any
	location string
	etag     string
	token    string
	retry    time.Duration
	stream   func(http.ResponseWriter, *http.Request) // answers in place of all the others
}

func ok(body obj) answer { return answer{status: http.StatusOK, body: body} }

func done() answer { return answer{status: http.StatusNoContent} }

// refused is an error answer. Its text has the arguments in it; a terse BMC sends
// only its id and the arguments.
type refused struct {
	id   string // of the message in the Base registry
	text string
	args []string
}

func refuse(status int, id, text string, args ...string) answer {
	return answer{status: status, body: refused{id: id, text: text, args: args}}
}

func missing(path string) answer {
	return refuse(http.StatusNotFound, "ResourceMissingAtURI", "The resource at the URI "+path+" was not found.", path)
}

const baseRegistry = "Base.1.8."

// errorBody is the Redfish form of an error.
func errorBody(r refused, terse bool) obj {
	id := baseRegistry + r.id
	if strings.Contains(r.id, ".") {
		id = r.id
	}
	info := obj{"@odata.type": "#Message.v1_1_1.Message", "MessageId": id}
	if len(r.args) > 0 {
		info["MessageArgs"] = r.args
	}
	if terse {
		return obj{"error": obj{"code": "iLO.0.10.ExtendedInfo", "message": "See @Message.ExtendedInfo for more information.", "@Message.ExtendedInfo": []obj{info}}}
	}
	info["Message"], info["Severity"] = r.text, "Critical"
	return obj{"error": obj{"code": id, "message": r.text, "@Message.ExtendedInfo": []obj{info}}}
}

// write sends an answer. With drop the connection breaks in the middle of it.
func (a answer) write(w http.ResponseWriter, terse, drop bool) {
	var body bytes.Buffer
	switch b := a.body.(type) {
	case nil:
	case refused:
		encode(&body, errorBody(b, terse))
	default:
		encode(&body, b)
	}
	a.head(w.Header(), body.Len())
	if drop {
		breakOff(w, a.status, body.Bytes())
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body.Bytes()) // nobody to tell: the client is gone
}

func encode(b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("bmcsim: a resource is no JSON: " + err.Error())
	}
}

func (a answer) head(h http.Header, size int) {
	h.Set("OData-Version", "4.0")
	h.Set("Cache-Control", "no-cache")
	if size > 0 {
		h.Set("Content-Type", "application/json; charset=utf-8")
		h.Set("Content-Length", strconv.Itoa(size))
	}
	for k, v := range map[string]string{"Location": a.location, "ETag": a.etag, "X-Auth-Token": a.token} {
		if v != "" {
			h.Set(k, v)
		}
	}
	if a.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int((a.retry+time.Second-1)/time.Second)))
	}
}

// breakOff sends half of an answer and closes the connection.
func breakOff(w http.ResponseWriter, status int, body []byte) {
	if len(body) > 1 {
		w.WriteHeader(status)
		_, _ = w.Write(body[:len(body)/2]) // it is meant to break
		_ = http.NewResponseController(w).Flush()
	}
	panic(http.ErrAbortHandler)
}
