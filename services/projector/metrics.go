package projector

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	lag       prometheus.Histogram
	delay     prometheus.Histogram
	restored  *prometheus.CounterVec
	conflicts prometheus.Counter
	purged    prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "metalbus_status_lag_revisions", Help: "How many revisions of a host its status was behind when it was looked at.",
			Buckets: []float64{0, 1, 2, 5, 10, 20, 50},
		}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "metalbus_status_delay_seconds", Help: "Time from an event that moved a host to another state to the status that shows it.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		restored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "metalbus_restored_total", Help: "Hosts that were restored from their objects, by why.",
		}, []string{"why"}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "metalbus_conflicts_total", Help: "Hosts of which object and bus told different lives, and that were paused for that.",
		}),
		purged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "metalbus_purged_total", Help: "Hosts whose events were removed some time after their objects.",
		}),
	}
	r.MustRegister(m.lag, m.delay, m.restored, m.conflicts, m.purged)
	return m
}
