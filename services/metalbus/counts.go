package metalbus

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// both registers metrics twice: where they are served, and where the tool
// itself reads them.
type both [2]prometheus.Registerer

// Register implements prometheus.Registerer.
func (b both) Register(c prometheus.Collector) error {
	return errors.Join(b[0].Register(c), b[1].Register(c))
}

// MustRegister implements prometheus.Registerer.
func (b both) MustRegister(all ...prometheus.Collector) {
	b[0].MustRegister(all...)
	b[1].MustRegister(all...)
}

// Unregister implements prometheus.Registerer.
func (b both) Unregister(c prometheus.Collector) bool {
	first, second := b[0].Unregister(c), b[1].Unregister(c)
	return first || second
}

// sums are the values of a counter, by one of its labels, where another label
// has a value.
func sums(from prometheus.Gatherer, counter, by, label, value string) (map[string]int, error) {
	families, err := from.Gather()
	if err != nil {
		return nil, err
	}
	all := map[string]int{}
	for _, f := range families {
		if f.GetName() != counter {
			continue
		}
		for _, m := range f.GetMetric() {
			if labels := labelsOf(m); labels[label] == value {
				all[labels[by]] += int(m.GetCounter().GetValue())
			}
		}
	}
	return all, nil
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}
