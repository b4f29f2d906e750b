package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Append records a fact of the host as it was loaded, and is the host after it.
// Only if nothing at all about the host has changed since is the fact recorded;
// else the error is ErrConflict, and nothing was appended. A fact that the
// lifecycle does not allow is refused with its *NotAllowedError. ErrUnanswered
// leaves open whether it was recorded.
//
// Two callers that append the same fact to the same host at once are told
// apart: one succeeds, the other has a conflict.
func (b *Bus) Append(ctx context.Context, h lifecycle.Host, f lifecycle.Fact) (lifecycle.Host, error) {
	if err := checkToken("uid", h.UID); err != nil {
		return h, err
	}
	if h.Epoch == "" {
		epoch, err := b.epochOf(ctx)
		if err != nil {
			return h, err
		}
		h.Epoch = epoch
	}
	d := b.draft(h, f)
	if err := lifecycle.Check(d.before, d.after, f); err != nil {
		b.m.refused.WithLabelValues(string(f.Section()), f.Name()).Inc()
		return h, err
	}
	m, err := b.message(ctx, &d)
	if err != nil {
		return h, fmt.Errorf("encode %s: %w", d.id, err)
	}
	seq, err := b.publish(ctx, m, h)
	if errors.Is(err, ErrUnavailable) {
		err = b.absent(ctx, StreamHost)
	}
	if err != nil {
		return h, fmt.Errorf("append %s: %w", d.id, err)
	}
	b.m.events.WithLabelValues(string(f.Section()), f.Name()).Inc()
	b.observeEnd(d)
	return d.stored(seq), nil
}

// draft is the event that records the fact, and the host after it.
func (b *Bus) draft(h lifecycle.Host, f lifecycle.Fact) draft {
	at := b.clock().UTC()
	id := event.ID(h.UID, h.Rev+1, f.Name())
	after := lifecycle.Apply(h, f, at)
	d := draft{before: h, after: after, fact: f, at: at, id: id}
	d.after = d.stored(h.Head) // the sequence is known once it is stored
	return d
}

// stored is the host after the event got its sequence.
func (d draft) stored(seq uint64) lifecycle.Host {
	before := d.sectionBefore()
	return d.after.WithNewest(d.fact.Section(), lifecycle.Meta{
		Seq: seq, Prev: d.before.Head, Before: before, First: before == 0, Rev: d.before.Rev + 1, ID: d.id, Fact: d.fact.Name(), At: d.at, Extra: d.extra,
	})
}

// publishTries is how often an append is sent that is not answered.
const publishTries = 2

// publish stores the message if the host's head is still what it was, and
// tries once more if the answer does not come. What is appended is told apart
// from the same decision of another process by the message id, which is new
// for each call.
func (b *Bus) publish(ctx context.Context, m *nats.Msg, h lifecycle.Host) (seq uint64, err error) {
	own := attr(m.Header, "id") + "/" + b.nonce()
	m.Header[nats.MsgIdHdr] = []string{own}
	filter := b.subj.host(h.UID)
	for try := range publishTries {
		ack, err := b.tryPublish(ctx, m, jetstream.WithExpectLastSequenceForSubject(h.Head, filter))
		switch {
		case err == nil:
			return ack.Sequence, nil
		case try > 0 && (isConflict(err) || isInProcess(err)):
			return b.storedBefore(ctx, h.UID, own)
		case isConflict(err):
			b.m.conflicts.Inc()
			return 0, ErrConflict
		case !isDoubtful(err):
			return 0, err
		}
		b.reconnect(ctx)
		if ctx.Err() != nil {
			break
		}
	}
	return 0, ErrUnanswered
}

func (b *Bus) tryPublish(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timing.Reply)
	defer cancel()
	ack, err := b.js.PublishMsg(ctx, m, opts...)
	var api *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return nil, ErrUnavailable
	case errors.As(err, &api) && api.ErrorCode == errCodeStreamFull:
		return nil, ErrFull
	}
	return ack, err
}

// Codes of the server that its library does not name.
const (
	errCodeStreamFull jetstream.ErrorCode = 10077 // the limit of bytes is reached, and new messages are discarded
	errCodeInProcess  jetstream.ErrorCode = 10158 // a message of this id is on its way into the stream
)

// storedBefore looks whether an unanswered try of ours has stored its event. If
// it is not there it may be yet, since the try may still be under way.
func (b *Bus) storedBefore(ctx context.Context, uid, own string) (uint64, error) {
	messages, err := b.newest(ctx, 0, sectionsExpected, b.subj.sections(uid))
	if err != nil {
		return 0, err
	}
	for _, m := range messages {
		if header(m.header, nats.MsgIdHdr) == own {
			return m.seq, nil
		}
	}
	return 0, ErrUnanswered
}

// isInProcess reports whether an earlier try of ours is still under way.
func isInProcess(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == errCodeInProcess
}

func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// isDoubtful reports whether the message may have been stored all the same.
func isDoubtful(err error) bool {
	var api *jetstream.APIError
	return !errors.As(err, &api) && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrFull) &&
		!errors.Is(err, nats.ErrMaxPayload) && !errors.Is(err, nats.ErrConnectionClosed)
}

// nonce is new for each call, in all processes.
func (b *Bus) nonce() string {
	return b.incarnation + "-" + strconv.FormatUint(b.calls.Add(1), 36)
}
