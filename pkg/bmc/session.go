package bmc

import (
	"context"
	"net/http"
)

// session is how the lane is logged in: by a token, or by basic authentication if
// there is none.
type session struct {
	open     bool
	token    string
	location string
}

// service is what the service root says.
type service struct {
	systems  string // path of the collection
	sessions string // path to log in at; "" if there are no sessions
	levels   int    // how deep $expand goes; 0 if there is none
	version  string
}

const (
	rootPath        = "/redfish/v1/"
	defaultSystems  = "/redfish/v1/Systems"
	defaultSessions = "/redfish/v1/SessionService/Sessions"
)

// link is a reference to another resource.
type link struct {
	ID string `json:"@odata.id"`
}

type rootBody struct {
	ID             string `json:"@odata.id"`
	RedfishVersion string
	Systems        link
	SessionService *link
	Links          struct{ Sessions link }
	Features       struct {
		Expand struct {
			NoLinks   bool
			Levels    bool
			MaxLevels int
		} `json:"ExpandQuery"`
	} `json:"ProtocolFeaturesSupported"`
}

// login makes sure that the lane is logged in. The service root is read first, so
// that no password goes to something that is no Redfish service. The caller has the
// turn.
func (l *lane) login(ctx context.Context) *Error {
	if l.session.open {
		return nil
	}
	if l.pool.failed.has(l.key.login) {
		e := l.wrongCredentials(nil)
		e.NotTried = true
		return e
	}
	if e := l.readRoot(ctx); e != nil {
		return e
	}
	if l.service.sessions == "" {
		l.session = session{open: true}
		return nil
	}
	return l.openSession(ctx)
}

func (l *lane) readRoot(ctx context.Context) *Error {
	if l.service != nil {
		return nil
	}
	a, e := l.send(ctx, request{method: http.MethodGet, path: rootPath, open: true})
	if e != nil {
		return e
	}
	if a.status == http.StatusUnauthorized || a.status == http.StatusForbidden {
		// Against the standard, but seen: the root behind the login, too.
		l.service = &service{systems: defaultSystems, sessions: defaultSessions}
		return nil
	}
	if e := l.answerError(a); e != nil {
		if e.is(ErrRefused) && a.status < http.StatusInternalServerError {
			return l.notRedfish()
		}
		return e
	}
	var b rootBody
	if a.decode(&b) != nil || b.RedfishVersion == "" && b.Systems.ID == "" {
		return l.notRedfish()
	}
	l.service = b.service()
	return nil
}

func (l *lane) notRedfish() *Error {
	return &Error{Reason: ErrNotRedfish, Detail: l.host() + " answers, but is no Redfish service", Advice: "check address and port; if the BMC is too old for Redfish, use ipmi://"}
}

func (b rootBody) service() *service {
	s := &service{systems: pathOf(b.Systems.ID), version: b.RedfishVersion}
	if s.systems == "" {
		s.systems = defaultSystems
	}
	if x := b.Features.Expand; x.NoLinks {
		s.levels = 1
		if x.Levels {
			s.levels = max(1, x.MaxLevels)
		}
	}
	s.sessions = pathOf(b.Links.Sessions.ID)
	if s.sessions == "" && b.SessionService != nil {
		s.sessions = defaultSessions
	}
	return s
}

// openSession logs in. Only an answer that is no judgement on the credentials leads
// on to basic authentication.
func (l *lane) openSession(ctx context.Context) *Error {
	a, e := l.send(ctx, request{
		method: http.MethodPost, path: l.service.sessions, open: true,
		body: struct{ UserName, Password string }{l.creds.user, l.creds.reveal()},
	})
	if e != nil {
		return e
	}
	token := a.header.Get("X-Auth-Token")
	if a.ok() && token != "" {
		l.session = session{open: true, token: token, location: pathOf(a.header.Get("Location"))}
		return nil
	}
	e = l.answerError(a)
	switch {
	case a.ok(), a.status == http.StatusNotFound, a.status == http.StatusMethodNotAllowed, a.status == http.StatusNotImplemented, e.has("SessionLimitExceeded"):
		l.session = session{open: true}
		return nil
	case a.status == http.StatusUnauthorized, e.has("UnauthorizedLoginAttempt"), a.status == http.StatusForbidden && e.is(ErrRefused):
		return l.rejected(a)
	case e.is(ErrUnauthorized):
		l.pool.failed.add(l.key.login)
		return e
	default:
		return e
	}
}

// rejected notes that these credentials are wrong, so that they are not tried again.
func (l *lane) rejected(a *response) *Error {
	e := l.wrongCredentials(a)
	l.session = session{}
	l.pool.failed.add(l.key.login)
	return e
}
