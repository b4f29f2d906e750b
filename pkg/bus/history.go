package bus

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/metalbus/metalbus/api/event"
)

// HistoryFilter chooses events. The zero filter chooses all of the cluster.
type HistoryFilter struct {
	// UID is a host, "" for all.
	UID string
	// Sections, none for all.
	Sections []event.Section
	// Types are CloudEvents types, none for all. One that ends in "*" stands
	// for all that begin like it.
	Types []string
	// Since leaves out what is older.
	Since time.Time
}

// History are the events that the filter chooses, in order, from the long copy
// of the log; with follow also those that come, until ctx ends. It is a little
// behind the log, and is for people: no decision is made from it.
func (b *Bus) History(ctx context.Context, f HistoryFilter, follow bool) iter.Seq2[cloudevents.Event, error] {
	return func(yield func(cloudevents.Event, error) bool) {
		o := replayOptions{stream: StreamHistory, subjects: b.historySubjects(f), since: f.Since, follow: follow}
		for m, err := range b.replay(ctx, o) {
			if err == nil && !f.matches(attr(m.header, "type")) {
				continue
			}
			e, err := toEvent(ctx, m, err)
			if !yield(e, err) {
				return
			}
		}
	}
}

func (b *Bus) historySubjects(f HistoryFilter) []string {
	uid := f.UID
	if uid == "" {
		uid = "*"
	}
	if len(f.Sections) == 0 {
		return []string{b.subj.sections(uid)}
	}
	subjects := make([]string, len(f.Sections))
	for i, s := range f.Sections {
		subjects[i] = b.subj.section(uid, s)
	}
	return subjects
}

func (f HistoryFilter) matches(eventType string) bool {
	return len(f.Types) == 0 || slices.ContainsFunc(f.Types, func(want string) bool {
		if prefix, ok := strings.CutSuffix(want, "*"); ok {
			return strings.HasPrefix(eventType, prefix)
		}
		return eventType == want
	})
}

func toEvent(ctx context.Context, m stored, err error) (cloudevents.Event, error) {
	if err != nil {
		return cloudevents.Event{}, fmt.Errorf("read history: %w", err)
	}
	e, err := readEvent(ctx, m.header, m.data)
	if err != nil {
		return cloudevents.Event{}, fmt.Errorf("event %d of the history: %w", m.seq, err)
	}
	return *e, nil
}
