package bmc

import (
	"context"
	"net/http"
)

// BMC is a handle on one machine behind its BMC. It holds no connection; its methods
// may be called at the same time from anywhere, and end with their context.
type BMC struct {
	pool  *Pool
	base  string
	path  string // of the system; "" for the only one
	creds Credentials
	key   laneKey
}

// String is the address, without credentials.
func (b *BMC) String() string { return b.base + b.path }

// talk is one conversation with a BMC: some requests for one purpose.
type talk struct {
	ctx  context.Context
	lane *lane
	bmc  *BMC
	op   string
}

// converse holds a conversation; op says what for.
func (b *BMC) converse(ctx context.Context, op string, f func(*talk) error) error {
	l, err := b.pool.borrow(b) //nolint:contextcheck // the end of a session outlives the call that began it
	if err != nil {
		return err
	}
	defer b.pool.give(l)
	return f(&talk{ctx: ctx, lane: l, bmc: b, op: op})
}

// fail gives an error its place and purpose.
func (t *talk) fail(e *Error) error {
	e.Op, e.BMC = t.op, t.bmc.String()
	return e
}

// get reads a resource. found is false for 404.
func (t *talk) get(path string, into any) (found bool, header http.Header, err error) {
	a, e := t.lane.do(t.ctx, request{method: http.MethodGet, path: path})
	if a != nil && a.status == http.StatusNotFound {
		return false, nil, nil
	}
	if e != nil {
		return false, nil, t.fail(e)
	}
	if a.decode(into) != nil {
		return false, nil, t.fail(&Error{Reason: ErrNotRedfish, Detail: "the answer for " + path + " is not what Redfish says it is", Advice: "update the BMC's firmware"})
	}
	return true, a.header, nil
}

// change makes a request that changes something.
func (t *talk) change(method, path string, body any, header map[string]string) error {
	if _, e := t.lane.do(t.ctx, request{method: method, path: path, body: body, header: header}); e != nil {
		return t.fail(e)
	}
	return nil
}
