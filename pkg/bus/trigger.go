package bus

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Trigger is why a host is looked at: an event of it, or a wake. It may be old,
// repeated or out of order; the host is as Load says.
type Trigger struct {
	// Section and Fact say what happened. Both are empty for a wake.
	Section event.Section
	Fact    string
	UID     string
	// Seq is the event's sequence in the log, Rev the host's revision that it made.
	Seq, Rev uint64
	// Stage is the state of the host after the event.
	Stage v1alpha1.ProvisioningState
	// Deliveries counts from 1 how often the message was handed out.
	Deliveries int
	// Wake is true for a nudge that is no event; Reason says who sent it, and why.
	Wake   bool
	Reason string
	// At is when it happened.
	At time.Time
	// ID is the event's CloudEvents id.
	ID string
	// Host is <namespace>/<name>, for people; it may be empty.
	Host string
}

// parseTrigger reads a trigger from the headers of a message; the data is left
// for later. The error says what is wrong with the message.
func (b *Bus) parseTrigger(m jetstream.Msg, meta *jetstream.MsgMetadata) (Trigger, error) {
	uid, token, ok := lastTokens(m.Subject())
	if !ok {
		return Trigger{}, fmt.Errorf("subject %q is none of ours", m.Subject())
	}
	h := m.Headers()
	t := Trigger{
		UID: uid, Section: event.Section(token), Seq: meta.Sequence.Stream,
		Deliveries: int(min(meta.NumDelivered, 1<<30)), //nolint:gosec // bounded
		At:         meta.Timestamp, ID: attr(h, "id"), Host: attr(h, "subject"),
		Stage: v1alpha1.ProvisioningState(attr(h, event.ExtStage)),
	}
	if t.Section.Writer() == "" {
		return t, nil // of a newer version
	}
	if source := attr(h, "source"); source != event.Source(b.cfg.Cluster, t.Section.Writer()) {
		return t, fmt.Errorf("%w: source %q", errForeign, source)
	}
	meta2, err := readMeta(h, t.Seq)
	if err != nil {
		return t, err
	}
	t.Fact, t.Rev = meta2.Fact, meta2.Rev
	return t, nil
}

// needs is the reader's level that the message asks for.
func needs(m jetstream.Msg) int {
	n, _ := strconv.Atoi(attr(m.Headers(), event.ExtMinReader))
	return n
}

// parsePhase is the phase in the fact of an operation; ok is false for others.
func parsePhase(fact string) (p event.Phase, ok bool) {
	i := strings.LastIndexByte(fact, '.')
	if i < 0 {
		return "", false
	}
	switch p = event.Phase(fact[i+1:]); p {
	case event.Started, event.Claimed, event.Accepted, event.Resumed, event.Succeeded, event.Failed, event.Aborted:
		return p, slices.Contains(event.Kinds(), event.Kind(fact[:i]))
	default:
		return "", false
	}
}

// isClaim reports whether the fact claims a write to the outside.
func isClaim(fact string) bool {
	p, _ := parsePhase(fact)
	return p == event.Started || p == event.Claimed
}

type triggerKey struct{}

func withTrigger(ctx context.Context, t Trigger) context.Context {
	return context.WithValue(ctx, triggerKey{}, t)
}

// triggerOf is the trigger that is being handled.
func triggerOf(ctx context.Context) (Trigger, bool) {
	t, ok := ctx.Value(triggerKey{}).(Trigger)
	return t, ok
}
