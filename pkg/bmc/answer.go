package bmc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stmcginnis/gofish/common"
)

// response is a whole answer.
type response struct {
	status int
	header http.Header
	body   []byte
}

func (r *response) ok() bool { return r.status >= 200 && r.status < 300 }

// decode reads the body as JSON.
func (r *response) decode(into any) error { return json.Unmarshal(r.body, into) }

// message is what the BMC says of an error, in its own words, and the ids of its
// messages.
func (l *lane) message(r *response) (text string, ids []string) {
	var e *common.Error
	if !errors.As(common.ConstructError(r.status, r.body), &e) || len(e.ExtendedInfos) == 0 && e.Code == "" {
		return "", nil
	}
	var said []string
	for _, x := range e.ExtendedInfos {
		ids = append(ids, x.MessageID)
		m := x.Message
		if m == "" {
			m = strings.TrimSpace(x.MessageID + " " + strings.Join(x.MessageArgs, ", "))
		}
		if m != "" && !slices.Contains(said, m) {
			said = append(said, m)
		}
	}
	if len(said) == 0 {
		said, ids = []string{e.Message}, []string{e.Code}
	}
	return l.scrub(strings.Join(said, "; ")), ids
}

// answerError turns an answer that is no success into an error; nil if it is one.
func (l *lane) answerError(r *response) *Error {
	if r.ok() {
		return nil
	}
	text, ids := l.message(r)
	e := &Error{Reason: ErrRefused, Status: r.status, ids: ids, protocol: bytes.Contains(r.body, []byte("TransferProtocolType")), Detail: fmt.Sprintf("the BMC refuses it (HTTP %d)", r.status)}
	if text != "" {
		e.Detail = fmt.Sprintf("the BMC says (HTTP %d): %s", r.status, text)
	}
	switch {
	case r.status == http.StatusServiceUnavailable, r.status == http.StatusTooManyRequests:
		e.Reason, e.RetryAfter = ErrBusy, retryAfter(r.header)
		e.Advice = "the BMC is busy or starting: wait; if it stays so, reset the BMC"
	case r.status == http.StatusForbidden && e.has("PasswordChangeRequired"):
		e.Reason, e.Advice = ErrUnauthorized, "log in to the BMC, change the password as it asks, and put the new one into the Secret"
	case r.status == http.StatusForbidden:
		e.Advice = "give the BMC's user the rights of an operator or administrator"
	case r.status == http.StatusBadRequest && strings.Contains(string(r.body), "HTTP request to an HTTPS server"):
		e.Reason, e.Detail, e.Advice = ErrTLS, l.host()+" wants https", "use an address with +https, or without +http"
	case r.status >= http.StatusInternalServerError:
		e.Advice = "this is trouble inside the BMC: try again later, and reset or update the BMC if it stays so"
	default:
		e.Advice = "the BMC's own log may say more; check its licence and firmware"
	}
	return e
}

func retryAfter(h http.Header) time.Duration {
	if s, err := strconv.Atoi(h.Get("Retry-After")); err == nil && s > 0 {
		return time.Duration(s) * time.Second
	}
	return 0
}

// wrongCredentials is the error for refused credentials.
func (l *lane) wrongCredentials(r *response) *Error {
	e := &Error{
		Reason: ErrUnauthorized, Advice: "correct them in the Secret; the login is not tried again before they change",
		Detail: fmt.Sprintf("the BMC refuses the password of user %q, or does not know that user", l.creds.user),
	}
	if r != nil {
		e.Status = r.status
		if text, _ := l.message(r); text != "" {
			e.Detail += fmt.Sprintf(" (HTTP %d: %s)", r.status, text)
		}
	}
	return e
}
