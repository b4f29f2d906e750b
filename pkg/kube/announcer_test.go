package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Events wait while the API is busy, and warnings do not; none waits for ever.
func TestEventsGiveWay(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		busy  int // looks that find the API busy
		looks int // all that are made
	}{
		"nothing to do":         {corev1.EventTypeNormal, 0, 1},
		"busy for a moment":     {corev1.EventTypeNormal, 3, 4},
		"busy all the time":     {corev1.EventTypeNormal, 1000, 1 + int(longestWay/lookAgain)},
		"a warning when busy":   {corev1.EventTypeWarning, 1000, 0},
		"a warning at any time": {corev1.EventTypeWarning, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			looks := 0
			a := &Announcer{busy: func() bool { looks++; return looks <= c.busy }}
			a.giveWay(t.Context(), &corev1.Event{Type: c.kind})
			if looks != c.looks {
				t.Errorf("looked %d times whether the API is busy, want %d", looks, c.looks)
			}
		})
	}
}
