package ironictest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// obj is a JSON object.
type obj = map[string]any

// answer is what a request gets.
type answer struct {
	status int
	body   any // none if nil
	header map[string]string
}

func ok(body any) (answer, error)          { return answer{status: http.StatusOK, body: body}, nil }
func done(status int) (answer, error)      { return answer{status: status}, nil }
func nothing(err error) (answer, error)    { return answer{}, err }
func created(body any) (answer, error)     { return answer{status: http.StatusCreated, body: body}, nil }
func (a answer) with(k, v string) answer   { a.header = map[string]string{k: v}; return a }
func bad(f string, args ...any) error      { return refuse(http.StatusBadRequest, f, args...) }
func conflict(f string, args ...any) error { return refuse(http.StatusConflict, f, args...) }

// refusal is an error that the caller sees. Plain ones carry a title in place of a
// fault, as those do that come from the framework below Ironic.
type refusal struct {
	status int
	text   string
	plain  bool
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status: status, text: fmt.Sprintf(format, args...)}
}

func refusePlainly(status int, text string) error {
	return &refusal{status: status, text: text, plain: true}
}

func noSuchPage() error { return refusePlainly(http.StatusNotFound, "") }

func notAcceptable() error { return refuse(http.StatusNotAcceptable, "Request not acceptable.") }

func noNode(ident string) error {
	return refuse(http.StatusNotFound, "Node %s could not be found.", ident)
}

// fault and title are the two things that an error can hold: JSON within JSON.
type fault struct {
	Code   string `json:"faultcode"`
	String string `json:"faultstring"`
	Debug  any    `json:"debuginfo"`
}

type title struct {
	Code        int    `json:"code"`
	Title       string `json:"title"`
	Description string `json:"description"`
}

// errorBody is the body of an error answer.
func errorBody(r *refusal) obj {
	var inner any = fault{Code: "Client", String: r.text}
	switch {
	case r.plain:
		inner = title{Code: r.status, Title: http.StatusText(r.status), Description: r.text}
	case r.status >= http.StatusInternalServerError:
		inner = fault{Code: "Server", String: r.text}
	}
	b, err := json.Marshal(inner)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return obj{"error_message": string(b)}
}

// answerOf makes an answer of an error.
func answerOf(err error) answer {
	r, isRefusal := errors.AsType[*refusal](err)
	if !isRefusal {
		r = &refusal{status: http.StatusInternalServerError, text: err.Error()}
	}
	return answer{status: r.status, body: errorBody(r)}
}

func (a answer) write(w http.ResponseWriter) {
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	b, err := json.Marshal(a.body)
	if err != nil {
		panic(err) // made of what JSON is made of
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, _ = w.Write(b) // the caller may have gone
}
