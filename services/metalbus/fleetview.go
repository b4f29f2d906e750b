package metalbus

import (
	"fmt"
	"strings"
	"time"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const (
	barWidth = 40
	// shownTroubles and shownEvents bound the lines of a frame.
	shownTroubles = 4
	shownEvents   = 8
)

// frame is the fleet as lines for a terminal, under a title.
func (s summary) frame(st styles, title string) []string {
	lines := []string{"", st.title.Render(title) + st.dim.Render(fmt.Sprintf("   %s, %d as asked, %.0f events/s", count(s.Total, "host"), s.Settled, s.Rate)), ""}
	for _, stage := range lifecycle.States() {
		if n := s.ByState[stage]; n > 0 || straight(stage) {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("  %-28s %5d  %s", state(stage), n, st.bar(stage, n, s.Total)), " "))
		}
	}
	if len(s.Troubled)+len(s.Trouble) > 0 {
		lines = append(lines, "", st.title.Render("Problems"))
		lines = append(lines, s.troubles(st)...)
	}
	if len(s.Recent) > 0 {
		lines = append(lines, "", st.title.Render("Last events"))
		for _, r := range s.Recent[max(0, len(s.Recent)-shownEvents):] {
			lines = append(lines, fmt.Sprintf("  %s  %-20s %s", st.dim.Render(r.At.Local().Format(time.TimeOnly)), r.Host, r.what()))
		}
	}
	return lines
}

func (s summary) troubles(st styles) []string {
	var lines []string
	for _, err := range s.Trouble[:min(len(s.Trouble), shownTroubles)] {
		lines = append(lines, "  "+st.bad.Render(err.Error()))
	}
	for i, h := range s.Troubled {
		if i == shownTroubles {
			return append(lines, fmt.Sprintf("  and %s more: metalbus host list", count(len(s.Troubled)-i, "host")))
		}
		lines = append(lines, "  "+h.Name()+"  "+st.bad.Render(lifecycle.Message(*lifecycle.Problem(h))))
	}
	return lines
}

// line is the fleet in one line.
func (s summary) line() string {
	var parts []string
	for _, stage := range lifecycle.States() {
		if n := s.ByState[stage]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state(stage)))
		}
	}
	text := count(s.Total, "host")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if n := len(s.Troubled); n > 0 {
		text += fmt.Sprintf("; %s with a problem", count(n, "host"))
	}
	return text
}

// straight are the states of the straight path, which are shown also while
// they are empty, so that the lines stay where they are.
func straight(s v1alpha1.ProvisioningState) bool {
	switch s {
	case v1alpha1.StateRegistering, v1alpha1.StateInspecting, v1alpha1.StatePreparing,
		v1alpha1.StateAvailable, v1alpha1.StateProvisioning, v1alpha1.StateProvisioned:
		return true
	default:
		return false
	}
}

func (st styles) bar(s v1alpha1.ProvisioningState, n, of int) string {
	if n == 0 || of == 0 {
		return ""
	}
	bar := strings.Repeat("█", max(1, n*barWidth/of))
	if s == v1alpha1.StateAvailable || lifecycle.Used(s) {
		return st.good.Render(bar)
	}
	return st.busy.Render(bar)
}
