package ironic

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count what Ironics are asked. One set serves all of a process.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	held     *prometheus.CounterVec
	reads    *prometheus.CounterVec
}

// NewMetrics are metrics in a registry; nil keeps them out of any.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "metalbus_ironic_requests_total", Help: "Requests made to an Ironic, by what was asked and by the status of the answer (0: none).",
		}, []string{"ironic", "call", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "metalbus_ironic_request_seconds", Help: "Time that requests to an Ironic took.",
			Buckets: []float64{.005, .02, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"ironic", "call"}),
		held: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "metalbus_ironic_requests_held_total", Help: "Requests that were not made, since the Ironic is in trouble or too many were under way.",
		}, []string{"ironic"}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "metalbus_ironic_node_reads_total", Help: "Nodes that were read, by what answered: a request of their own (single), a listing shared with others (listing), or an earlier one (kept).",
		}, []string{"ironic", "by"}),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.seconds, m.held, m.reads)
	}
	return m
}

// done counts a request that was made.
func (m *Metrics) done(ironic, call string, took time.Duration, err error) {
	status := "ok"
	if e, ok := errors.AsType[*Error](err); ok {
		status = strconv.Itoa(e.Status)
	}
	m.requests.WithLabelValues(ironic, call, status).Inc()
	m.seconds.WithLabelValues(ironic, call).Observe(took.Seconds())
}
