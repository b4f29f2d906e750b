package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/api/event"
)

// DeadLetter is a message that a service could not handle, and set aside.
type DeadLetter struct {
	// ID names the dead letter in METAL_DLQ.
	ID      uint64    `json:"-"`
	Service string    `json:"service"`
	UID     string    `json:"uid"`
	At      time.Time `json:"at"`
	// Reason is one word; Error says more.
	Reason string `json:"reason"`
	Error  string `json:"error,omitempty"`
	// Attempts is how often the message had been handed out.
	Attempts int `json:"attempts"`
	// Stream, Sequence and Subject say where the message was, Header and Body
	// are its copy.
	Stream   string      `json:"stream"`
	Sequence uint64      `json:"sequence"`
	Subject  string      `json:"subject"`
	Header   nats.Header `json:"header,omitempty"`
	Body     []byte      `json:"body,omitempty"`
}

// bury stores a copy of the message as a dead letter. If that does not work
// the message comes again.
func (s *server) bury(ctx context.Context, d delivery, v verdict) verdict {
	if err := s.b.deadLetter(ctx, s.service, d, v); err != nil {
		return again(troubled, s.b.cfg.Timing.retry(s.failed(d.t))).because(errors.Join(v.cause, err))
	}
	s.b.m.dead.WithLabelValues(v.why).Inc()
	return v
}

func (b *Bus) deadLetter(ctx context.Context, service string, d delivery, v verdict) error {
	letter := DeadLetter{
		Service: service, UID: d.t.UID, At: b.clock().UTC(), Reason: v.why, Attempts: d.t.Deliveries,
		Stream: d.meta.Stream, Sequence: d.meta.Sequence.Stream, Subject: d.msg.Subject(),
		Header: d.msg.Headers(), Body: d.msg.Data(),
	}
	if v.cause != nil {
		letter.Error = v.cause.Error()
	}
	data, err := json.Marshal(letter)
	if err != nil {
		return err
	}
	e := cloudevents.New()
	e.SetID(service + "/" + strconv.FormatUint(letter.Sequence, 10))
	e.SetType(event.TypeDeadLetter)
	e.SetSource(event.Source(b.cfg.Cluster, service))
	e.SetTime(letter.At)
	e.SetExtension(event.ExtHostUID, letter.UID)
	setJSON(&e, data)
	m := &nats.Msg{Subject: b.subj.dead(service, letter.UID), Header: nats.Header{nats.MsgIdHdr: []string{e.ID()}}}
	if err := writeEvent(ctx, &e, m); err != nil {
		return err
	}
	if _, err := b.tryPublish(ctx, m); err != nil {
		return fmt.Errorf("store a dead letter: %w", err)
	}
	return nil
}

// DeadLetters are the dead letters of the cluster, the oldest first.
func (b *Bus) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		for m, err := range b.replay(ctx, replayOptions{stream: StreamDead, subjects: []string{b.subj.allDead()}}) {
			if err != nil {
				yield(DeadLetter{}, fmt.Errorf("read dead letters: %w", err))
				return
			}
			letter, err := parseLetter(m.seq, m.data)
			if !yield(letter, err) {
				return
			}
		}
	}
}

func parseLetter(id uint64, data []byte) (DeadLetter, error) {
	letter := DeadLetter{ID: id}
	if err := json.Unmarshal(data, &letter); err != nil {
		return letter, fmt.Errorf("dead letter %d: %w", id, err)
	}
	return letter, nil
}

// ErrNoDeadLetter says that there is no dead letter of that number, or no longer.
var ErrNoDeadLetter = errors.New("no such dead letter")

// DeadLetter is the dead letter with the id.
func (b *Bus) DeadLetter(ctx context.Context, id uint64) (DeadLetter, error) {
	s, err := b.js.Stream(ctx, StreamDead)
	if err != nil {
		return DeadLetter{}, ours(err)
	}
	m, err := s.GetMsg(ctx, id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return DeadLetter{}, fmt.Errorf("%d: %w", id, ErrNoDeadLetter)
	}
	if err != nil {
		return DeadLetter{}, err
	}
	return parseLetter(id, m.Data)
}

// ReplayDeadLetter wakes the service for the dead letter's host, and drops the
// letter: the service looks at the host as it is now. The old message itself is
// not sent again.
func (b *Bus) ReplayDeadLetter(ctx context.Context, id uint64) error {
	letter, err := b.DeadLetter(ctx, id)
	if err != nil {
		return err
	}
	if err := b.Wake(ctx, letter.Service, letter.UID, "replay"); err != nil {
		return err
	}
	return b.DropDeadLetter(ctx, id)
}

// DropDeadLetter removes a dead letter.
func (b *Bus) DropDeadLetter(ctx context.Context, id uint64) error {
	s, err := b.js.Stream(ctx, StreamDead)
	if err != nil {
		return ours(err)
	}
	err = s.DeleteMsg(ctx, id)
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		return fmt.Errorf("%d: %w", id, ErrNoDeadLetter)
	}
	return err
}
