package ironic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"

	"github.com/gophercloud/gophercloud/v2"
)

// translate makes one of our errors of whatever came back, so that neither
// gophercloud's types nor secrets leave the package.
func (c *Client) translate(op string, secrets []string, err error) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if code, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		return c.refused(op, secrets, code)
	}
	e := &Error{Reason: ErrNotReady, Ironic: c.cfg.Name, Op: op, cause: cause(err)}
	e.Detail, e.Advice = c.trouble(err)
	e.Detail = scrub(e.Detail, secrets...)
	return e
}

// cause is what of an error callers may ask for: the end of their context, or a
// time-out, after which it is open what was done. Its text is not used.
func cause(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err), broken(err):
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// broken reports whether a connection may have broken after the request was sent:
// any error of it that is not one of making the connection.
func broken(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	_, isURL := errors.AsType[*url.Error](err)
	return isURL && !certificateTrouble(err)
}

// certificateTrouble reports whether a connection failed over certificates, so
// that nothing was sent.
func certificateTrouble(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return verification || record || alert || authority || host || invalid || contains(err.Error(), "remote error: tls")
}

// trouble says what is wrong with a connection, and what to do.
func (c *Client) trouble(err error) (detail, advice string) {
	inner := err
	if u, ok := errors.AsType[*url.Error](err); ok {
		inner = u.Err
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case syntax || kind:
		return "the answer is none of Ironic's: " + inner.Error(), fmt.Sprintf("check that the endpoint %s is that of the Ironic API", c.base)
	case certificateTrouble(err):
		return inner.Error(), "check the CA file and the certificates of this Ironic; changed files are read again by themselves"
	case isTimeout(err) || errors.Is(err, context.DeadlineExceeded):
		return "no answer in time", "look at Ironic's load and log"
	default:
		return "cannot reach ironic endpoint " + c.base + ": " + inner.Error(), "check the endpoint and that Ironic runs; it is tried again by itself"
	}
}

var noSuchNode = regexp.MustCompile(`^Node \S+ could not be found`)

// refused makes an error of an answer that Ironic gave.
func (c *Client) refused(op string, secrets []string, code gophercloud.ErrUnexpectedResponseCode) error {
	text := scrub(message(code.Body), secrets...)
	e := &Error{Ironic: c.cfg.Name, Op: op, Detail: text, Status: code.Actual}
	if text == "" {
		e.Detail = fmt.Sprintf("status %d %s", code.Actual, http.StatusText(code.Actual))
	}
	e.Reason = reasonOf(code.Actual, text)
	switch {
	case errors.Is(e.Reason, ErrUnauthorized):
		e.Advice = "check the user name and password that the Ironic API is entered with"
	case code.Actual >= 300 && code.Actual < 400:
		e.Advice = fmt.Sprintf("the endpoint sends us on to %s: configure that one", scrub(code.ResponseHeader.Get("Location")))
	}
	return e
}

// reasonOf sorts answers by what can be done about them.
func reasonOf(status int, text string) error {
	switch status {
	case http.StatusUnauthorized:
		return ErrUnauthorized
	case http.StatusForbidden:
		return ErrForbidden
	case http.StatusNotFound:
		if noSuchNode.MatchString(text) {
			return ErrNoNode
		}
		return ErrNotFound
	case http.StatusNotAcceptable:
		return ErrVersion
	case http.StatusConflict:
		return conflictOf(text)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return ErrBusy
	case http.StatusBadRequest:
		return badRequestOf(text)
	case http.StatusInternalServerError:
		if text != "" {
			return ErrFailed
		}
	}
	return ErrNotReady
}

// conflictOf: most conflicts pass by themselves.
func conflictOf(text string) error {
	if contains(text, "already exists", "is associated with instance", "already associated", "can not delete node", "failed to set node power state",
		"in maintenance mode. please remove", "is already in use") {
		return ErrConflict
	}
	return ErrBusy
}

func badRequestOf(text string) error {
	switch {
	case contains(text, "can not be performed on node"):
		return ErrWrongState
	case contains(text, "does not support", "disabled or not implemented", "unsupported"):
		return ErrUnsupported
	default:
		return ErrInvalid
	}
}

// message is the text in the body of an error, which mostly is JSON in JSON.
func message(body []byte) string {
	var outer struct {
		Message json.RawMessage `json:"error_message"`
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
		fault
	}
	if json.Unmarshal(body, &outer) != nil {
		return plain(body)
	}
	if outer.Error.Message != "" {
		return outer.Error.Message
	}
	if text := outer.text(); text != "" {
		return text
	}
	var inner string
	if json.Unmarshal(outer.Message, &inner) != nil {
		inner = string(outer.Message)
	}
	var f fault
	if json.Unmarshal([]byte(inner), &f) == nil {
		return f.text()
	}
	return inner
}

// fault is the two forms that Ironic's own errors have.
type fault struct {
	FaultString string `json:"faultstring"`
	Description string `json:"description"`
	Title       string `json:"title"`
}

func (f fault) text() string {
	for _, t := range []string{f.FaultString, f.Description, f.Title} {
		if t != "" {
			return t
		}
	}
	return ""
}

// plain is a body that is no JSON. A page of HTML, which a proxy makes, says less
// than its status.
func plain(body []byte) string {
	text := string(body)
	if contains(text, "<html", "<!doctype") {
		return ""
	}
	return text
}
