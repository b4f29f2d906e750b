package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
)

type metrics struct {
	questions *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	expires   prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		questions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "metalbus_webhook_requests_total", Help: "Questions of the Kubernetes API to the webhook, by what was asked and answered.",
		}, []string{"webhook", "operation", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "metalbus_webhook_request_duration_seconds", Help: "How long the webhook took for an answer.",
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1},
		}, []string{"webhook"}),
		expires: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "metalbus_webhook_certificate_expiry_timestamp_seconds", Help: "When the certificate that the webhook shows runs out, in seconds since 1970.",
		}),
	}
	r.MustRegister(m.questions, m.duration, m.expires)
	return m
}

func (m *metrics) answered(webhook string, operation admissionv1.Operation, outcome string, took time.Duration) {
	m.questions.WithLabelValues(webhook, string(operation), outcome).Inc()
	m.duration.WithLabelValues(webhook).Observe(took.Seconds())
}
