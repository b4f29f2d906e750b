package bmcsim

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"time"
)

const (
	sessionIdle = 30 * time.Minute // a session that nobody uses ends
	maxSessions = 16               // of one login; the oldest gives way
)

// session belongs to credentials, and opens every BMC that has them.
type session struct {
	id    string
	token string
	user  string
	key   loginKey
	used  time.Time
}

// sessions are all sessions of a simulator. They live in memory only: a restart
// ends them, as the reset of a BMC does.
type sessions struct {
	now func() time.Time

	mu      sync.Mutex
	byToken map[string]*session
	byLogin map[loginKey][]*session // oldest first
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, byToken: map[string]*session{}, byLogin: map[loginKey][]*session{}}
}

func (s *sessions) open(user string, key loginKey) *session {
	n := &session{id: randomHex(4), token: randomHex(16), user: user, key: key, used: s.now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := s.byLogin[key]
	for len(mine) > 0 && (len(mine) >= maxSessions || s.stale(mine[0])) {
		delete(s.byToken, mine[0].token)
		mine = mine[1:]
	}
	s.byToken[n.token] = n
	s.byLogin[key] = append(slices.Clip(mine), n)
	return n
}

// stale tells whether a session has not been used for too long. The caller holds s.mu.
func (s *sessions) stale(x *session) bool { return s.now().Sub(x.used) > sessionIdle }

// use gives the credentials behind a token, and whether the token is any good.
func (s *sessions) use(token string) (loginKey, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.byToken[token]
	if x == nil {
		return loginKey{}, false
	}
	if s.stale(x) {
		s.drop(x)
		return loginKey{}, false
	}
	x.used = s.now()
	return x.key, true
}

// of are the sessions of a login, oldest first.
func (s *sessions) of(key loginKey) []session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []session
	for _, x := range s.byLogin[key] {
		out = append(out, *x)
	}
	return out
}

// close ends the session of a login that has this id, and tells whether there was one.
func (s *sessions) close(key loginKey, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.byLogin[key] {
		if x.id == id {
			s.drop(x)
			return true
		}
	}
	return false
}

// end closes all sessions of a login.
func (s *sessions) end(key loginKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range slices.Clone(s.byLogin[key]) {
		s.drop(x)
	}
}

func (s *sessions) drop(x *session) {
	delete(s.byToken, x.token)
	left := slices.DeleteFunc(s.byLogin[x.key], func(y *session) bool { return x == y })
	if s.byLogin[x.key] = left; len(left) == 0 {
		delete(s.byLogin, x.key)
	}
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
