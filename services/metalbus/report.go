package metalbus

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// report sums up what it took to bring hosts to where they are.
type report struct {
	Hosts int
	// InState is how long hosts were in each state that they left, sorted.
	InState map[v1alpha1.ProvisioningState][]time.Duration
	// Whole is from the first event of a host to its newest, sorted.
	Whole []time.Duration
	// Events, Writes and Requests are what all hosts took together: events on
	// the bus, writes to the Kubernetes API, and requests to BMCs.
	Events, Writes, Requests int
	// Of is the host whose time is in the middle, and Story its events.
	Of    string
	Story []record
}

// report sums up the hosts, all of whose life must have been in this process.
func (s *site) report(ctx context.Context, hosts []lifecycle.Host) (report, error) {
	stories := map[string][]record{}
	for e, err := range s.bus.History(ctx, bus.HistoryFilter{}, false) {
		if err != nil {
			return report{}, err
		}
		r := readRecord(e)
		stories[r.UID] = append(stories[r.UID], r)
	}
	r := newReport(hosts, stories)
	for _, n := range s.rack.sim.Requests() {
		r.Requests += n
	}
	writes, err := total(s.counts, "metalbus_kube_writes_total", func(labels map[string]string) bool { return labels["outcome"] == "ok" })
	r.Writes = int(writes)
	return r, err
}

func newReport(hosts []lifecycle.Host, stories map[string][]record) report {
	r := report{Hosts: len(hosts), InState: map[v1alpha1.ProvisioningState][]time.Duration{}}
	type life struct {
		host lifecycle.Host
		took time.Duration
	}
	var lives []life
	for _, h := range hosts {
		story := stories[h.UID]
		if len(story) == 0 {
			continue
		}
		r.Events += len(story)
		for i, step := range stages(story) {
			if i > 0 {
				before := stages(story)[i-1]
				r.InState[before.Stage] = append(r.InState[before.Stage], step.At.Sub(before.At))
			}
		}
		took := story[len(story)-1].At.Sub(story[0].At)
		r.Whole = append(r.Whole, took)
		lives = append(lives, life{h, took})
	}
	for _, d := range r.InState {
		slices.Sort(d)
	}
	slices.Sort(r.Whole)
	slices.SortStableFunc(lives, func(a, b life) int { return int(a.took - b.took) })
	if len(lives) > 0 {
		middle := lives[len(lives)/2].host
		r.Of, r.Story = middle.Name(), stories[middle.UID]
	}
	return r
}

// stages are the events that brought a host into another state.
func stages(story []record) []record {
	return slices.CompactFunc(slices.Clone(story), func(a, b record) bool { return a.Stage == b.Stage })
}

// percentile is the nearest rank of sorted durations.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}

// text is the report for people.
func (r report) text(st styles) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n\n", st.title.Render("How long hosts took"))
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "STATE\tHOSTS\tP50\tP99\t")
	for _, stage := range lifecycle.States() {
		if d := r.InState[stage]; len(d) > 0 {
			fmt.Fprintf(table, "%s\t%d\t%s\t%s\t\n", state(stage), len(d), seconds(percentile(d, 50)), seconds(percentile(d, 99)))
		}
	}
	fmt.Fprintf(table, "in all\t%d\t%s\t%s\t\n", len(r.Whole), seconds(percentile(r.Whole, 50)), seconds(percentile(r.Whole, 99)))
	_ = table.Flush() // to memory
	each := float64(max(1, r.Hosts))
	fmt.Fprintf(&b, "\n%s\n\n", st.title.Render("What a host took"))
	fmt.Fprintf(&b, "  %.1f events, %.1f writes to the Kubernetes API, %.1f requests to its BMC\n", float64(r.Events)/each, float64(r.Writes)/each, float64(r.Requests)/each)
	if len(r.Story) > 0 {
		fmt.Fprintf(&b, "\n%s\n\n%s", st.title.Render("The time line of "+r.Of), timeLine(r.Story))
	}
	return b.String()
}

// timeLine tells a host's events, with the time since the first.
func timeLine(story []record) string {
	var b strings.Builder
	before := v1alpha1.ProvisioningState("?")
	for _, r := range story {
		stage := ""
		if r.Stage != before {
			stage, before = state(r.Stage), r.Stage
		}
		line := fmt.Sprintf("  %8s  %-14s  %s", "+"+seconds(r.At.Sub(story[0].At)), stage, r.what())
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	return b.String()
}
