package bus

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// hostsAtOnce is how many hosts are read by one request.
const hostsAtOnce = 100

// Hosts are all hosts of the cluster in the order of their uids, each as it is
// when it is read. After an error there are no more.
func (b *Bus) Hosts(ctx context.Context) iter.Seq2[lifecycle.Host, error] {
	return func(yield func(lifecycle.Host, error) bool) {
		uids, err := b.uids(ctx)
		if err != nil {
			yield(lifecycle.Host{}, fmt.Errorf("list hosts: %w", err))
			return
		}
		for batch := range slices.Chunk(uids, hostsAtOnce) {
			if !b.yieldHosts(ctx, batch, yield) {
				return
			}
		}
	}
}

func (b *Bus) uids(ctx context.Context) ([]string, error) {
	s, err := b.js.Stream(ctx, StreamHost)
	if err != nil {
		return nil, ours(err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(b.subj.allHosts()))
	if err != nil {
		return nil, err
	}
	var uids []string
	for subject := range info.State.Subjects {
		if uid, _, ok := lastTokens(subject); ok {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids), nil
}

func (b *Bus) yieldHosts(ctx context.Context, uids []string, yield func(lifecycle.Host, error) bool) bool {
	filters := make([]string, len(uids))
	for i, uid := range uids {
		filters[i] = b.subj.sections(uid)
	}
	messages, err := b.newest(ctx, 0, maxAnswers, filters...)
	if err != nil {
		yield(lifecycle.Host{}, fmt.Errorf("read hosts: %w", err))
		return false
	}
	byHost := map[string][]stored{}
	for _, m := range messages {
		uid, _, _ := lastTokens(m.subject)
		uid = strings.Clone(uid)
		byHost[uid] = append(byHost[uid], m)
	}
	for _, uid := range uids {
		if len(byHost[uid]) == 0 {
			continue // purged meanwhile
		}
		h, err := b.assemble(ctx, uid, byHost[uid])
		if !yield(h, err) || (err != nil && ctx.Err() != nil) {
			return false
		}
	}
	return true
}
