package metalbus

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	// Events and Requests are what all hosts took together: events on the bus,
	// and requests to BMCs.
	Events, Requests int
	// Writes to the Kubernetes API, by what was written.
	Writes map[string]int
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
	var err error
	r.Writes, err = sums(s.counts, "metalbus_kube_writes_total", "kind", "outcome", "ok")
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
	fmt.Fprintf(&b, "\n%s\n\n%s", st.title.Render("What a host took"), r.costs())
	if len(r.Story) > 0 {
		fmt.Fprintf(&b, "\n%s\n\n%s", st.title.Render("The time line of "+r.Of), timeLine(r.Story))
	}
	return b.String()
}

// costs are what one host took, on average.
func (r report) costs() string {
	each := func(n int) float64 { return float64(n) / float64(max(1, r.Hosts)) }
	var b strings.Builder
	fmt.Fprintf(&b, "  %6.1f  events on the bus\n", each(r.Events))
	all := 0
	var parts []string
	for _, kind := range slices.SortedFunc(maps.Keys(r.Writes), func(a, b string) int { return cmp.Or(r.Writes[b]-r.Writes[a], strings.Compare(a, b)) }) {
		all += r.Writes[kind]
		parts = append(parts, fmt.Sprintf("%.1f %s", each(r.Writes[kind]), kind))
	}
	fmt.Fprintf(&b, "  %6.1f  writes to the Kubernetes API: %s\n", each(all), strings.Join(parts, ", "))
	fmt.Fprintf(&b, "  %6.1f  requests to its BMC\n", each(r.Requests))
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
