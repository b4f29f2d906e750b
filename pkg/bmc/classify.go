package bmc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
)

// errOwnTimeout is why a request of ours ends when our own limit is over, as
// against the caller's.
var errOwnTimeout = errors.New("no answer within the limit")

// transportError says in our words why there was no answer, or only a part of one.
// ctx is the caller's, reqCtx the request's. It tells also whether the BMC is to
// blame, so that it counts for leaving it alone.
func (l *lane) transportError(ctx, reqCtx context.Context, err error) (e *Error, blame bool) {
	if ctx.Err() != nil {
		return l.callerGone(ctx), false
	}
	if e := l.tlsError(err); e != nil {
		return e, true
	}
	if e := l.nameError(err); e != nil {
		return e, true
	}
	host := l.host()
	var netErr net.Error
	switch {
	case errors.Is(context.Cause(reqCtx), errOwnTimeout), errors.As(err, &netErr) && netErr.Timeout():
		return l.noAnswer(), true
	case errors.Is(err, errRedirected):
		return l.redirected(), false
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Error{Reason: ErrUnreachable, Detail: host + " refuses the connection", Advice: "check address and port, and that the BMC's web service is switched on"}, true
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return &Error{Reason: ErrUnreachable, Detail: "there is no route to " + host, Advice: "check the address and the network between"}, true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &Error{Reason: ErrUnreachable, Detail: host + " closed the connection before its answer was whole", Advice: "check that the BMC is well"}, true
	default:
		return &Error{Reason: ErrUnreachable, Detail: "the connection to " + host + " failed: " + l.scrub(innermost(err)), Advice: "check address, port and network"}, true
	}
}

func (l *lane) noAnswer() *Error {
	return &Error{
		Reason: ErrTimeout, Detail: l.host() + " does not answer in time",
		Advice: "check that the address is right, that the network lets requests through, and that the BMC is well",
	}
}

// innermost is the text of the error at the bottom, which has no URL in it.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// callerGone is the error of a caller whose context has ended.
func (l *lane) callerGone(ctx context.Context) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{Reason: ErrTimeout, Detail: "no answer from " + l.host() + " within the caller's deadline", Advice: "check that the BMC is well, or allow it more time", cause: context.DeadlineExceeded}
	}
	return &Error{Reason: ErrTimeout, Detail: "the caller gave up", cause: context.Canceled}
}

func (l *lane) nameError(err error) *Error {
	dns, isName := errors.AsType[*net.DNSError](err)
	switch {
	case !isName:
		return nil
	case dns.IsNotFound:
		return &Error{Reason: ErrUnknownHost, Detail: fmt.Sprintf("the name %q is unknown", dns.Name), Advice: "correct the BMC's address, or add the name to DNS"}
	default:
		return &Error{Reason: ErrUnreachable, Detail: fmt.Sprintf("the name %q could not be looked up", dns.Name), Advice: "check that DNS answers"}
	}
}

// tlsError explains why there is no secure connection; nil if that is not the
// trouble.
func (l *lane) tlsError(err error) *Error {
	const off = "set disableCertificateVerification for this host"
	fail := func(detail, advice string) *Error { return &Error{Reason: ErrTLS, Detail: detail, Advice: advice} }
	cert := "the certificate of " + l.host()
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		header  tls.RecordHeaderError
		alert   tls.AlertError
		verify  *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &unknown):
		return fail(cert+" is signed by nobody that is trusted here", "give the authority's certificate, or "+off)
	case errors.As(err, &name):
		return fail(cert+" is for another name", "use a name that is in the certificate, renew the certificate, or "+off)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fail(cert+" has expired or is not valid yet", "renew it, set the clocks right, or "+off)
	case errors.As(err, &invalid), errors.As(err, &verify):
		return fail(cert+" cannot be verified", "replace it, or "+off)
	case errors.As(err, &header), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fail(l.host()+" speaks no TLS on this port", "correct the port, or use an address with +http")
	case errors.As(err, &alert), strings.Contains(err.Error(), "tls: "):
		return fail("no TLS connection with "+l.host()+" came about: "+l.scrub(innermost(err)), "update the BMC's firmware: at least TLS 1.2 is needed")
	default:
		return nil
	}
}

func (l *lane) redirected() *Error {
	e := &Error{Reason: ErrRefused, Detail: l.host() + " sends requests on to another address", Advice: "use that address in its place"}
	if strings.HasPrefix(l.base, "http://") {
		e.Reason, e.Advice = ErrTLS, "it probably wants https: use an address with +https, or without +http"
	}
	return e
}
