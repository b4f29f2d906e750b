package ironic

import (
	"errors"
	"slices"
	"strings"

	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Reasons why Ironic did not do what was asked. errors.Is finds them in any error
// of this package.
var (
	// ErrNotReady: Ironic cannot be used now: no connection, no answer, an answer
	// that is none of Ironic's, no drivers, or a version that is too old.
	ErrNotReady = errors.New("ironic: not ready")
	// ErrUnauthorized: the API refuses the user name or the password.
	ErrUnauthorized = errors.New("ironic: wrong user name or password")
	// ErrForbidden: the user may not do this, or the node is protected.
	ErrForbidden = errors.New("ironic: forbidden")
	// ErrNoNode: there is no such node.
	ErrNoNode = errors.New("ironic: no such node")
	// ErrNotFound: the node has no such thing.
	ErrNotFound = errors.New("ironic: not found")
	// ErrConflict: something else has what was asked for: a name, a MAC address,
	// the node itself.
	ErrConflict = errors.New("ironic: conflict")
	// ErrBusy: the node is locked or changing its state, or Ironic has no room now.
	// Nothing was done.
	ErrBusy = errors.New("ironic: busy")
	// ErrWrongState: the node's state does not allow this. Nothing was done.
	ErrWrongState = errors.New("ironic: wrong state for this")
	// ErrInvalid: Ironic does not take the request as it is.
	ErrInvalid = errors.New("ironic: invalid request")
	// ErrVersion: the server no longer speaks the version that it was asked in.
	ErrVersion = errors.New("ironic: version not spoken")
	// ErrUnsupported: this Ironic or this driver cannot do this.
	ErrUnsupported = errors.New("ironic: not supported")
	// ErrFailed: Ironic tried and failed, mostly at the BMC.
	ErrFailed = errors.New("ironic: failed")
	// ErrHidden: the node is its own parent, so Ironic hides it and refuses to power
	// it off.
	ErrHidden = errors.New("ironic: node is its own parent")
)

// Error is a failed call of an Ironic.
type Error struct {
	// Reason is one of the Err values.
	Reason error
	// Ironic is the name of the Ironic.
	Ironic string
	// Op is what was being tried, such as "create node lab~host-a".
	Op string
	// Detail is what happened, in Ironic's words where it has any; never a secret.
	Detail string
	// Advice is what to do about it, "" if that depends on who asked.
	Advice string
	// Status is the HTTP status of the answer, 0 without one.
	Status int

	cause error
}

// Error says what was tried where, what happened, and what to do.
func (e *Error) Error() string {
	where := e.Op
	if e.Ironic != "" {
		where += " at ironic " + e.Ironic
	}
	parts := slices.DeleteFunc([]string{where, e.Detail, e.Advice}, func(s string) bool { return s == "" })
	return strings.Join(parts, ": ")
}

// Unwrap gives the reason, lifecycle.ErrBusy if the same may work later, and what
// the connection says was the cause.
func (e *Error) Unwrap() []error {
	all := []error{e.Reason}
	if errors.Is(e.Reason, ErrBusy) || errors.Is(e.Reason, ErrWrongState) {
		all = append(all, lifecycle.ErrBusy)
	}
	if e.cause != nil {
		all = append(all, e.cause)
	}
	return all
}

// Detail is what Ironic itself says in an error, or the whole of it if it is not
// Ironic's.
func Detail(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Detail != "" {
		return e.Detail
	}
	return scrub(err.Error())
}

// selfParentAdvice is about a fault of two packaged builds.
const selfParentAdvice = "this is a known fault of the Debian packages 29.0.5 and 35.0.1: each change of a node makes it its own parent, " +
	"it vanishes from listings and cannot be powered off; install a repaired Ironic and clear parent_node in its database"

// hiddenNode is the error about a node that is its own parent.
func (c *Client) hiddenNode(n Node) error {
	return &Error{
		Reason: ErrHidden, Ironic: c.cfg.Name, Op: "read node " + n.UUID,
		Detail: "the node's parent_node is the node itself", Advice: selfParentAdvice,
	}
}

// contains reports whether text has one of the parts, in any case of letters.
func contains(text string, parts ...string) bool {
	text = strings.ToLower(text)
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
