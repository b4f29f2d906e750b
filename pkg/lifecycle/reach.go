package lifecycle

import (
	"time"

	"github.com/metalbus/metalbus/api/event"
)

// Current reports whether the backend holds the host as it is asked for now: at
// this address, with these credentials.
func Current(h Host) bool {
	r := h.Registration
	return r.Registered && !r.Lost && !r.Detached && r.Address == h.Intent.Spec.BMC.Address && checked(h)
}

// checked reports whether the BMC accepts the credentials that are asked for
// now. A host that has to go makes do with those that were good when its Secret
// is gone: its backend may not need it any more.
func checked(h Host) bool {
	if loginGone(h) {
		return true
	}
	return SameCredentials(h.Registration.Good, Credentials(h.Intent))
}

// Unadopted reports whether the backend has yet to take the running machine of
// the host over: its record of the host is not the one by which the machine
// came into use.
func Unadopted(h Host) bool {
	r, p := h.Registration, h.Provisioning
	if !r.Registered || r.Lost || r.Detached || r.Node == p.Node || r.Node == r.Adopted {
		return false
	}
	return p.Phase == event.Deployed || (p.Phase == event.Undeploying && occupied(p)) || (external(h) && !Leaving(h))
}

// occupied reports whether something of a user's is on the disk.
func occupied(p event.Provisioning) bool { return p.Image.URL != "" || p.CustomDeploy != nil }

// Reachable reports whether work on the host may begin: the backend holds it as
// it is asked for, and has taken over what runs on it. Where not, it is the
// registrar's turn, and the others wait.
func Reachable(h Host) bool {
	return Current(h) && !Hindered(h) && !Unadopted(h)
}

// Hindered reports whether a problem of the registration keeps work from the
// host. That its Secret is gone keeps none from a host that has to go.
func Hindered(h Host) bool {
	p := h.Registration.Problem
	return p != nil && (!p.Local || !loginGone(h))
}

// loginGone reports whether the host has to go, and its Secret is gone already.
func loginGone(h Host) bool { return Leaving(h) && h.Intent.Credentials.Version == "" }

// Orphaned reports whether an operation on the host has nothing left to go on
// with, since the backend does not hold the host.
func Orphaned(h Host) bool { return h.Registration.Lost || h.Registration.Detached }

// GiveUpAfter is how many failures in a row end the attempts to undo a host
// that has to go.
const GiveUpAfter = 3

// forceAfter is how long a deletion that is forced may take before what is not
// done by then is left undone.
const forceAfter = 10 * time.Minute

// GaveUp reports whether the section has tried often enough to undo a host that
// has to go. What failed before the deletion is tried once more at least.
func GaveUp(h Host, w event.Work) bool {
	if w.Problem == nil || w.Problem.At.Before(h.Intent.DeletedAt) {
		return false
	}
	return w.Failures > GiveUpAfter || h.Intent.ForceDelete
}

// Overdue reports whether a deletion that is forced has taken too long already:
// nothing is waited for any more.
func Overdue(h Host, now time.Time) bool {
	i := h.Intent
	return i.ForceDelete && Leaving(h) && now.Sub(i.DeletedAt) > forceAfter
}

// Unreachable reports whether the host has to go and its BMC or backend has
// been tried in vain often enough.
func Unreachable(h Host) bool {
	if !Leaving(h) || Reachable(h) {
		return false
	}
	return GaveUp(h, h.Registration.Work) || (Orphaned(h) && loginGone(h))
}
