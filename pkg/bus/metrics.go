package bus

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of one service's connection. Which service it is, the service's frame
// adds as a label.
type metrics struct {
	age, handle, opAge *prometheus.HistogramVec

	events, refused, claims, wakes, external, dead *prometheus.CounterVec

	conflicts, stale, missed, newer, reconnects, panics prometheus.Counter
}

func newMetrics() *metrics {
	name := func(n, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "metalbus", Name: n, Help: help}
	}
	counter := func(n, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts(name(n, help)))
	}
	counters := func(n, help string, by ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts(name(n, help)), by)
	}
	seconds := func(n, help string, buckets []float64, by ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "metalbus", Name: n, Help: help, Buckets: buckets,
		}, by)
	}
	return &metrics{
		age:        seconds("trigger_age_seconds", "From an event to the end of its first handling.", prometheus.ExponentialBuckets(0.002, 3, 11), "outcome"),
		handle:     seconds("handle_seconds", "Time to handle a message.", prometheus.ExponentialBuckets(0.0005, 3, 11), "outcome"),
		opAge:      seconds("op_age_seconds", "How long operations took, by kind and end.", prometheus.ExponentialBuckets(0.1, 3, 11), "kind", "end"),
		events:     counters("events_total", "Events appended.", "section", "fact"),
		refused:    counters("not_allowed_total", "Facts that the lifecycle's table does not allow.", "section", "fact"),
		claims:     counters("claims_total", "Writes to the outside that were claimed.", "kind"),
		wakes:      counters("wakes_total", "Wakes sent.", "reason"),
		external:   counters("external_refused_total", "Claimed writes that were not answered with success.", "answer"),
		dead:       counters("dlq_total", "Messages that were set aside as dead letters.", "reason"),
		conflicts:  counter("cas_conflicts_total", "Appends that lost a race."),
		stale:      counter("stale_reads_total", "Reads that were older than their trigger."),
		missed:     counter("claim_window_missed_total", "Claims that were not used since the process had been held up."),
		newer:      counter("schema_newer_total", "Messages left to a newer version."),
		reconnects: counter("forced_reconnects_total", "Connections given up since requests were not answered."),
		panics:     counter("panics_total", "Handlers that panicked."),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.age, m.handle, m.opAge, m.events, m.refused, m.claims, m.wakes, m.external, m.dead,
		m.conflicts, m.stale, m.missed, m.newer, m.reconnects, m.panics,
	}
}

var _ prometheus.Collector = (*Bus)(nil)

// Describe implements prometheus.Collector: register the bus to export its metrics.
func (b *Bus) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range b.m.all() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (b *Bus) Collect(ch chan<- prometheus.Metric) {
	for _, c := range b.m.all() {
		c.Collect(ch)
	}
}

// observeEnd notes what an appended event means for the metrics.
func (b *Bus) observeEnd(d draft) {
	before, after := d.before.Work(d.fact.Section()).Op, d.after.Work(d.fact.Section()).Op
	if before == nil || after != nil {
		return
	}
	end := d.fact.Name()[strings.LastIndexByte(d.fact.Name(), '.')+1:]
	b.m.opAge.WithLabelValues(string(before.Kind), end).Observe(d.at.Sub(before.StartedAt).Seconds())
}
