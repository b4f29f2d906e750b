package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// AuditReport is what an audit of the log found.
type AuditReport struct {
	Hosts, Events int
	// Findings are breaches of what the bus promises; there must be none.
	Findings []Finding
}

// Finding is a breach in the log of a host.
type Finding struct {
	UID string
	// Rev is the revision at which it shows.
	Rev  uint64
	What string
}

func (f Finding) String() string {
	return fmt.Sprintf("host %s at revision %d: %s", f.UID, f.Rev, f.What)
}

// Audit reads the whole log of the cluster and proves what appends promise: the
// revisions of each host have no gap, each section was written by its own
// service, a host had one operation at a time, and each claim belongs to an
// operation that had been started.
func (b *Bus) Audit(ctx context.Context) (AuditReport, error) {
	var report AuditReport
	hosts := map[string]*hostAudit{}
	for m, err := range b.replay(ctx, replayOptions{stream: StreamHost, subjects: []string{b.subj.allHosts()}}) {
		if err != nil {
			return report, fmt.Errorf("audit: %w", err)
		}
		report.Events++
		uid, _, _ := lastTokens(m.subject)
		h := hosts[uid]
		if h == nil {
			h = &hostAudit{uid: uid, sections: map[event.Section]*sectionAudit{}}
			hosts[uid] = h
		}
		r, err := b.parseRecord(m)
		h.event(r, err)
	}
	report.Hosts = len(hosts)
	for _, h := range hosts {
		h.explainGaps()
		report.Findings = append(report.Findings, h.findings...)
	}
	slices.SortFunc(report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Rev, b.Rev))
	})
	return report, ctx.Err()
}

// hostAudit is the audit of one host.
type hostAudit struct {
	uid      string
	rev      uint64
	sections map[event.Section]*sectionAudit
	gaps     []uint64 // revisions that are not in the log
	findings []Finding
}

// sectionAudit is what was seen of a section.
type sectionAudit struct {
	events   int
	firstRev uint64
	op       *event.Op
}

func (h *hostAudit) found(rev uint64, format string, args ...any) {
	h.findings = append(h.findings, Finding{h.uid, rev, fmt.Sprintf(format, args...)})
}

func (h *hostAudit) event(r record, err error) {
	switch {
	case errors.Is(err, errForeign):
		h.found(h.rev+1, "a section was %v", err)
		return
	case err != nil:
		h.found(h.rev+1, "%v", err)
		return
	case r.section == "":
		return // of a newer version
	}
	h.order(r)
	s := h.section(r.section)
	if s.events++; s.events == 1 {
		s.firstRev = r.meta.Rev
	}
	h.operation(r, s)
	if intent, ok := r.state.(event.Intent); ok && intent.Base != nil && r.meta.Fact == event.Restored {
		h.restored(*intent.Base)
	}
}

func (h *hostAudit) section(s event.Section) *sectionAudit {
	if h.sections[s] == nil {
		h.sections[s] = &sectionAudit{}
	}
	return h.sections[s]
}

// restored takes over the operations that the host's object remembered.
func (h *hostAudit) restored(base event.Base) {
	var host lifecycle.Host
	fillBase(&host, base)
	for _, s := range event.Sections() {
		if base.Has(s) {
			h.section(s).op = host.Work(s).Op
		}
	}
}

// order checks the revision. A restored host goes on from what its object knew.
func (h *hostAudit) order(r record) {
	rev := r.meta.Rev
	switch {
	case rev <= h.rev:
		h.found(rev, "%s.%s comes after revision %d", r.section, r.meta.Fact, h.rev)
	case r.meta.Fact == event.Restored:
	default:
		for missing := h.rev + 1; missing < rev && len(h.gaps) < maxFindings; missing++ {
			h.gaps = append(h.gaps, missing)
		}
	}
	h.rev = max(h.rev, rev)
}

// maxFindings bounds what is said about one host.
const maxFindings = 1000

func (h *hostAudit) operation(r record, s *sectionAudit) {
	before, after := s.op, workOf(r).Op
	s.op = after
	if after == nil {
		return
	}
	for other, o := range h.sections {
		if other != r.section && o.op != nil {
			h.found(r.meta.Rev, "operation %s runs beside %s", after.ID, o.op.ID)
		}
	}
	phase, ok := parsePhase(r.meta.Fact)
	known := s.events > 1 || len(h.gaps) == 0 // else its beginning may have been pruned
	switch {
	case !ok || !known:
	case phase == event.Started && before != nil:
		h.found(r.meta.Rev, "operation %s was started while %s was under way", after.ID, before.ID)
	case phase == event.Claimed && (before == nil || before.ID != after.ID):
		h.found(r.meta.Rev, "operation %s was claimed and not started before", after.ID)
	case phase == event.Claimed && after.Claim != before.Claim+1:
		h.found(r.meta.Rev, "claim %d of operation %s follows claim %d", after.Claim, after.ID, before.Claim)
	}
}

func workOf(r record) event.Work {
	var h lifecycle.Host
	setState(&h, r.state)
	return h.Work(r.section)
}

// explainGaps reports the revisions that are missing without a reason. The log
// drops the oldest events of a section that has as many as it keeps.
func (h *hostAudit) explainGaps() {
	for _, rev := range h.gaps {
		pruned := false
		for _, s := range h.sections {
			pruned = pruned || (s.events >= maxPerSection && rev < s.firstRev)
		}
		if !pruned {
			h.found(rev, "the revision is missing")
		}
	}
}
