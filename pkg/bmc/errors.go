package bmc

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Reasons why a BMC did not do what was asked. errors.Is finds them in any error of
// this package.
var (
	// ErrUnauthorized: the BMC refuses the user name or the password.
	ErrUnauthorized = errors.New("bmc: wrong user name or password")
	// ErrUnknownHost: the name of the BMC does not resolve.
	ErrUnknownHost = errors.New("bmc: unknown host")
	// ErrUnreachable: no connection, or one that broke before the answer.
	ErrUnreachable = errors.New("bmc: unreachable")
	// ErrTLS: no secure connection: a certificate that is not trusted, http in place
	// of https or the other way round, protocols that do not meet.
	ErrTLS = errors.New("bmc: no secure connection")
	// ErrTimeout: no answer in time.
	ErrTimeout = errors.New("bmc: no answer in time")
	// ErrNotRedfish: something answers, but not a Redfish service.
	ErrNotRedfish = errors.New("bmc: not a Redfish service")
	// ErrNoSystem: the BMC has no system at the path of the address.
	ErrNoSystem = errors.New("bmc: no such system")
	// ErrSeveralSystems: the address names no system, and there are several.
	ErrSeveralSystems = errors.New("bmc: several systems")
	// ErrRefused: the BMC understood and will not, or cannot.
	ErrRefused = errors.New("bmc: refused")
	// ErrBusy: the BMC has no time or no room now.
	ErrBusy = errors.New("bmc: busy")
	// ErrNotTried comes with one of the others: nothing was sent, since the same
	// thing failed before. See the package comment.
	ErrNotTried = errors.New("bmc: not tried")
	// ErrClosed: the pool was closed.
	ErrClosed = errors.New("bmc: the pool is closed")
	// ErrNoIPMITool: IPMI needs the program ipmitool, and it is not there.
	ErrNoIPMITool = errors.New("bmc: ipmitool is missing")
)

// Error is a failed call of a BMC.
type Error struct {
	// Reason is one of the Err values.
	Reason error
	// BMC is the address, without credentials.
	BMC string
	// Op is what was being tried, like "read the power".
	Op string
	// Detail is what happened.
	Detail string
	// Advice is what to do about it.
	Advice string
	// Systems are the paths of the systems that there are, for ErrNoSystem and
	// ErrSeveralSystems.
	Systems []string
	// Status is the HTTP status of the answer, 0 without one.
	Status int
	// RetryAfter is how long to wait before another try, as far as it is known: the
	// BMC's own wish with ErrBusy, the rest of the pause with ErrNotTried.
	RetryAfter time.Duration
	// NotTried says that nothing was sent.
	NotTried bool

	cause error // the end of the caller's context, if that was it
	ids   []string
	// protocol: the answer is about TransferProtocolType.
	protocol bool
}

// Error says what was tried where, what happened, and what to do.
func (e *Error) Error() string {
	parts := make([]string, 0, 3)
	if e.Op != "" {
		parts = append(parts, e.Op+" at "+e.BMC)
	}
	for _, p := range []string{e.Detail, e.Advice} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ": ")
}

// Unwrap gives the reason, ErrNotTried if nothing was sent, and the error of the
// caller's context if its end was the cause.
func (e *Error) Unwrap() []error {
	all := []error{e.Reason}
	if e.NotTried {
		all = append(all, ErrNotTried)
	}
	if e.cause != nil {
		all = append(all, e.cause)
	}
	return all
}

func (e *Error) is(reason error) bool { return errors.Is(e.Reason, reason) }

// has tells whether the BMC's answer carries a message of this name.
func (e *Error) has(message string) bool {
	for _, id := range e.ids {
		if id == message || strings.HasSuffix(id, "."+message) {
			return true
		}
	}
	return false
}

// refusedByBMC tells whether an error is the BMC's own refusal by one of the given
// statuses, any of 400 to 499 if none is given. Then nothing was carried out.
func refusedByBMC(err error, statuses ...int) (*Error, bool) {
	e, isOurs := errors.AsType[*Error](err)
	if !isOurs || !e.is(ErrRefused) || e.Status == 0 {
		return nil, false
	}
	if len(statuses) == 0 {
		return e, e.Status < http.StatusInternalServerError
	}
	return e, slices.Contains(statuses, e.Status)
}
