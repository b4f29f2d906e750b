package ironic

import (
	"sync"
	"time"
)

// gathered are questions that wait to be answered together. Its owner's lock guards
// it.
type gathered[Q any] struct {
	waiting []Q
	planned bool // somebody is going to answer those who wait
	// of the last listing:
	ended time.Time
	took  time.Duration
}

// add adds a question to those who wait, and sees to it that answer is called.
func (g *gathered[Q]) add(now time.Time, q Q, answer func()) {
	g.waiting = append(g.waiting, q)
	if g.planned {
		return
	}
	g.planned = true
	time.AfterFunc(max(gather, g.ended.Add(min(max(share*g.took, shortestGather), longestGather)).Sub(now)), answer)
}

// take are the questions to be answered now. Who comes from now on waits for the
// next time.
func (g *gathered[Q]) take() []Q {
	questions := g.waiting
	g.waiting, g.planned = nil, false
	return questions
}

// listed notes when a listing was made.
func (g *gathered[Q]) listed(began, ended time.Time) { g.ended, g.took = ended, ended.Sub(began) }

// atOnce answers questions side by side.
func atOnce[Q any](questions []Q, answer func(Q)) {
	var all sync.WaitGroup
	for _, q := range questions {
		all.Go(func() { answer(q) })
	}
	all.Wait()
}
