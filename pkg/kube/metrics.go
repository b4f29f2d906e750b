package kube

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// The kinds of writes, as the metrics name them.
const (
	writeStatus       = "status"
	writeMetadata     = "metadata"
	writeFinalizer    = "finalizer"
	writeSecret       = "secret"
	writeHardwareData = "hardwaredata"
	writeEvent        = "event"
)

type metrics struct {
	writes  *prometheus.CounterVec
	dropped *prometheus.CounterVec
	unkept  *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "metalbus_kube_writes_total", Help: "Writes to the Kubernetes API, by what was written and how it ended.",
		}, []string{"kind", "outcome"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "metalbus_kube_events_dropped_total", Help: "Kubernetes Events that were not made, by why.",
		}, []string{"why"}),
		unkept: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "metalbus_kube_fields_dropped_total", Help: "Fields that the API dropped when they were written, since its CRDs are older than this program.",
		}, []string{"field"}),
	}
	r.MustRegister(m.writes, m.dropped, m.unkept)
	return m
}

func (m *metrics) wrote(kind string, err error) {
	outcome := "error"
	switch {
	case err == nil:
		outcome = "ok"
	case errors.Is(err, ErrConflict):
		outcome = "conflict"
	case errors.Is(err, ErrGone):
		outcome = "gone"
	}
	m.writes.WithLabelValues(kind, outcome).Inc()
}
