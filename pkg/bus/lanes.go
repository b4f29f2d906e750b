package bus

import "sync"

// maxParked bounds the messages of one host that wait for their turn.
const maxParked = 16

// lanes keep two messages of one host from being handled side by side in one
// process. A message whose host is busy is parked; whoever handles the host
// takes it next. So a slow host holds one worker, whatever comes for it.
type lanes struct {
	mu     sync.Mutex
	parked map[string][]delivery // by uid; an entry means that the host is being handled
}

func newLanes() *lanes { return &lanes{parked: map[string][]delivery{}} }

// place in a lane.
type place int

const (
	first   place = iota // the host is the caller's until next says otherwise
	waiting              // parked: the one who has the host will take it
	full                 // too many wait already
)

func (l *lanes) enter(d delivery) place {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue, busy := l.parked[d.t.UID]
	switch {
	case !busy:
		l.parked[d.t.UID] = nil
		return first
	case len(queue) >= maxParked:
		return full
	default:
		l.parked[d.t.UID] = append(queue, d)
		return waiting
	}
}

// next is the next message of the host; without one the host is let go.
func (l *lanes) next(uid string) (delivery, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.parked[uid]
	if len(queue) == 0 {
		delete(l.parked, uid)
		return delivery{}, false
	}
	l.parked[uid] = queue[1:]
	return queue[0], true
}
