package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// sectionsExpected is more than a host has sections.
const sectionsExpected = 16

// Load is the host as it is now: the newest event of each of its sections, read
// at one point of the log. Any replica may answer, so it can be a little older
// than an event that was just seen; an append after such a read is refused. A
// host that the bus does not know has Rev 0.
//
// The error is a *BadEventError if an event of the host is unreadable, and a
// *NewerError if this version is too old to understand it.
func (b *Bus) Load(ctx context.Context, uid string) (lifecycle.Host, error) {
	return b.loadAt(ctx, uid, 0)
}

// loadAt is the host as it was at a sequence of the log, 0 for now.
func (b *Bus) loadAt(ctx context.Context, uid string, upTo uint64) (lifecycle.Host, error) {
	if err := checkToken("uid", uid); err != nil {
		return lifecycle.Host{}, err
	}
	messages, err := b.newest(ctx, upTo, sectionsExpected, b.subj.sections(uid))
	if err != nil {
		return lifecycle.Host{}, fmt.Errorf("load host %s: %w", uid, err)
	}
	return b.assemble(ctx, uid, messages)
}

// newest are the newest events of the subjects in METAL_HOST.
func (b *Bus) newest(ctx context.Context, upTo uint64, expect int, subjects ...string) ([]stored, error) {
	return b.read(ctx, StreamHost, upTo, expect, subjects...)
}

// readTries is how often a read is asked for. Each time another replica of the
// stream may get it: one that froze or died answers nothing.
const readTries = 3

func (b *Bus) read(ctx context.Context, stream string, upTo uint64, expect int, subjects ...string) ([]stored, error) {
	return b.ask(ctx, stream, func(ctx context.Context) ([]stored, error) {
		return b.direct.last(ctx, stream, upTo, expect, subjects...)
	})
}

// ask reads from a stream, several times if need be.
func (b *Bus) ask(ctx context.Context, stream string, read func(context.Context) ([]stored, error)) (messages []stored, err error) {
	for range readTries {
		try, cancel := context.WithTimeout(ctx, b.cfg.Timing.Reply/readTries)
		messages, err = read(try)
		cancel()
		if !errors.Is(err, ErrUnanswered) || ctx.Err() != nil {
			break
		}
	}
	if errors.Is(err, ErrUnavailable) {
		err = b.absent(ctx, stream)
	}
	return messages, err
}

// assemble makes a host of the newest message of each of its sections.
func (b *Bus) assemble(ctx context.Context, uid string, messages []stored) (lifecycle.Host, error) {
	h := lifecycle.Host{UID: uid}
	if len(messages) == 0 {
		return h, nil
	}
	var err error
	if h.Epoch, err = b.epochOf(ctx); err != nil {
		return h, err
	}
	records := make([]record, 0, len(messages))
	for _, m := range messages {
		r, err := b.rightful(ctx, m)
		if err != nil {
			return h, err
		}
		if r.section != "" {
			records = append(records, r)
		}
	}
	fill(&h, records)
	h.Head = messages[len(messages)-1].seq
	return h, nil
}

// rightful is the newest event at or before m, of m's section, that its own
// service wrote. What others wrote there is passed over: it was dead-lettered.
// The record has no section if there is none.
func (b *Bus) rightful(ctx context.Context, m stored) (record, error) {
	for {
		r, err := b.decodeRecord(m)
		if !errors.Is(err, errForeign) {
			return r, err
		}
		older, err := b.newest(ctx, m.seq-1, 1, m.subject)
		if err != nil {
			return record{}, err
		}
		if len(older) == 0 {
			return record{}, nil
		}
		m = older[0]
	}
}

// fill puts the sections into the host.
func fill(h *lifecycle.Host, records []record) {
	var base event.Base
	for _, r := range records {
		if intent, ok := r.state.(event.Intent); ok && intent.Base != nil {
			base = *intent.Base
		}
	}
	fillBase(h, base)
	for _, r := range records {
		if older := r.section != event.SectionIntent && r.meta.Rev <= base.Rev && base.Has(r.section); older {
			continue
		}
		setState(h, r.state)
		*h = h.WithNewest(r.section, r.meta)
	}
}

// fillBase starts from what the host's object remembered.
func fillBase(h *lifecycle.Host, base event.Base) {
	if base.Registration != nil {
		h.Registration = *base.Registration
	}
	if base.Inspection != nil {
		h.Inspection = *base.Inspection
	}
	if base.Provisioning != nil {
		h.Provisioning = *base.Provisioning
	}
	if base.Power != nil {
		h.Power = *base.Power
	}
}
