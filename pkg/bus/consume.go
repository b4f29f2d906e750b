package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// handler is what a service does with its messages.
type handler interface {
	// early decides from the message alone, if it can. It is asked first of
	// all, since every other delay would count as a delivery.
	early(d delivery) (verdict, bool)
	// handle does the work. One host is handled once at a time.
	handle(ctx context.Context, d delivery) verdict
	// tick is called on each tick that is not the bus's own.
	tick(ctx context.Context, name string) error
	// forgotten reports whether a host should be looked at though nothing happened.
	forgotten(h lifecycle.Host) bool
}

// delivery is a message in hand.
type delivery struct {
	msg  jetstream.Msg
	meta *jetstream.MsgMetadata
	t    Trigger
}

// server runs a service's messages through its handler.
type server struct {
	b       *Bus
	service string
	h       handler
	lanes   *lanes
	slots   chan struct{} // one for each message that is being handled
	running sync.WaitGroup
	troubles
	notes   *notes
	ticking ticking
}

// serve runs until ctx ends, and then lets go gracefully: what is in hand is
// finished, what is not yet in hand is given back.
func (b *Bus) serve(ctx context.Context, service string, h handler) error {
	if err := checkToken("service", service); err != nil {
		return err
	}
	s := &server{
		b: b, service: service, h: h, lanes: newLanes(),
		slots: make(chan struct{}, b.cfg.Workers), troubles: newTroubles(),
	}
	var err error
	if s.notes, err = b.openNotes(ctx, service); err != nil {
		return err
	}
	defer s.notes.close()
	work := []func(context.Context) error{
		func(ctx context.Context) error { return s.pull(ctx, StreamHost, s.acceptEvent) },
		func(ctx context.Context) error { return s.pull(ctx, StreamWake, s.acceptWake) },
	}
	err = together(ctx, work...)
	s.running.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// together runs the functions until all have ended; the first error ends the others.
func together(ctx context.Context, work ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(work))
	for _, f := range work {
		go func() {
			errs <- f(ctx)
		}()
	}
	var first error
	for range work {
		if err := <-errs; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	return first
}

// pull reads the service's consumer of a stream until ctx ends. A consumer
// that is not there, or goes, is waited for.
func (s *server) pull(ctx context.Context, stream string, accept func(context.Context, jetstream.Msg)) error {
	for ctx.Err() == nil {
		c, err := s.consumer(ctx, stream)
		if err != nil {
			return err
		}
		if err := s.read(ctx, c, accept); err != nil && ctx.Err() == nil {
			s.b.log.WarnContext(ctx, "reading a consumer ended, beginning again",
				keyConsumer, stream+"/"+s.b.subj.consumer(s.service), keyError, err.Error())
			pause(ctx, s.b.cfg.Timing.Retry)
		}
	}
	return nil
}

// consumer waits for the consumer.
func (s *server) consumer(ctx context.Context, stream string) (jetstream.Consumer, error) {
	name := stream + "/" + s.b.subj.consumer(s.service)
	for said := false; ; {
		c, err := s.b.js.Consumer(ctx, stream, s.b.subj.consumer(s.service))
		if err == nil {
			s.b.state.waiting(name, false)
			return c, nil
		}
		s.b.state.waiting(name, true)
		if !said {
			s.b.log.WarnContext(ctx, "waiting for a consumer: is the bus initialized? Run 'metalbus bus init'", keyConsumer, name, keyError, err.Error())
			said = true
		}
		if !pause(ctx, s.b.cfg.Timing.Retry) {
			return nil, ctx.Err()
		}
	}
}

// A pull that got lost, say by a change of the consumer's leader, is noticed
// by missed heartbeats.
const (
	pullExpiry    = 10 * time.Second
	pullHeartbeat = 3 * time.Second
)

// read takes messages until ctx ends; what was fetched by then is given back.
func (s *server) read(ctx context.Context, c jetstream.Consumer, accept func(context.Context, jetstream.Msg)) error {
	it, err := c.Messages(
		jetstream.PullMaxMessages(s.b.cfg.Workers), jetstream.PullExpiry(pullExpiry),
		jetstream.PullHeartbeat(pullHeartbeat), jetstream.WithMessagesErrOnMissingHeartbeat(false))
	if err != nil {
		return err
	}
	defer it.Stop()
	defer context.AfterFunc(ctx, func() { s.letGo(it) })()
	for {
		m, err := it.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		accept(ctx, m)
	}
}

// letGo stops the fetching, and leaves what was fetched to be given back. With
// no connection nothing can be given back.
func (s *server) letGo(it jetstream.MessagesContext) {
	if s.b.state.down() {
		it.Stop()
		return
	}
	it.Drain()
	time.AfterFunc(s.b.cfg.Timing.Reply, it.Stop)
}

// pause waits; it is false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// acceptEvent takes a message of METAL_HOST.
func (s *server) acceptEvent(ctx context.Context, m jetstream.Msg) {
	meta, err := m.Metadata()
	if err != nil {
		s.b.log.ErrorContext(ctx, "a message without metadata", keyError, err.Error())
		return
	}
	d := delivery{msg: m, meta: meta}
	d.t, err = s.b.parseTrigger(m, meta)
	switch {
	case err != nil:
		s.settle(ctx, d, verdict{why: "unreadable", do: bury, cause: err})
	case d.t.Section.Writer() == "":
		s.settle(ctx, d, done("unknown"))
	default:
		s.accept(ctx, d)
	}
}

// accept takes what the message alone decides, and hands the rest to a worker.
func (s *server) accept(ctx context.Context, d delivery) {
	v, decided := s.early(ctx, d)
	switch {
	case decided:
	case ctx.Err() != nil:
		v = again("handed on", 0)
	case needs(d.msg) > readerLevel:
		s.b.m.newer.Inc()
		v = again("newer", around(s.b.cfg.Timing.Refused))
	case !d.t.Wake && s.notes.condemned(d.t.Seq):
		v = verdict{why: "deadly", do: bury, cause: fmt.Errorf("processes died with it in hand %d times", maxDeaths)}
	default:
		s.queue(ctx, d)
		return
	}
	s.settle(ctx, d, v)
}

// queue hands the message to the worker that has its host, or to a free one.
func (s *server) queue(ctx context.Context, d delivery) {
	switch s.lanes.enter(d) {
	case full:
		s.settle(ctx, d, again("crowded", s.b.cfg.Timing.conflict()))
	case first:
		s.start(ctx, d)
	case waiting:
	}
}

// start takes a worker for the host, and waits for one if none is free.
func (s *server) start(ctx context.Context, d delivery) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		s.giveBack(ctx, d)
		return
	}
	s.running.Go(func() {
		defer func() { <-s.slots }()
		s.run(ctx, d)
	})
}

// run handles a message, and all of its host that were parked meanwhile.
func (s *server) run(ctx context.Context, d delivery) {
	for ok := true; ok; d, ok = s.lanes.next(d.t.UID) {
		if ctx.Err() != nil {
			s.settle(ctx, d, again("handed on", 0))
			continue
		}
		s.settle(ctx, d, s.attend(ctx, d))
	}
}

func (s *server) giveBack(ctx context.Context, d delivery) {
	for ok := true; ok; d, ok = s.lanes.next(d.t.UID) {
		s.settle(ctx, d, again("handed on", 0))
	}
}

// settle carries the verdict out.
func (s *server) settle(ctx context.Context, d delivery, v verdict) {
	if v.do == bury {
		v = s.bury(ctx, d, v)
	}
	s.b.report(ctx, d, v)
	if err := v.settle(d.msg); err != nil {
		s.b.log.DebugContext(ctx, "settle a message", keySequence, d.t.Seq, keyError, err.Error())
	}
}
