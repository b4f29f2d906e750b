package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Page is docs/lifecycle.md: the states, the picture, and what may follow what,
// as the rules and the table have it.
func Page() string {
	var b strings.Builder
	b.WriteString("<!-- Generated from pkg/lifecycle by `make generate`. -->\n# The life of a host\n\n")
	b.WriteString("`status.provisioning.state` is stored nowhere: it is computed from the newest event of each section of a host, by the rules below. " +
		"Which fact may be recorded in which state, and where it may lead, is one table; what the table does not allow is refused.\n\n")
	writePicture(&b)
	writeRules(&b)
	writeMoves(&b)
	writeMatrix(&b)
	return b.String()
}

// edge is a way from one state to another.
type edge struct{ from, to v1alpha1.ProvisioningState }

// label shortens the facts of an edge to what a picture can hold.
func label(r Row) string {
	if r.Section == event.SectionIntent {
		return r.Why
	}
	return strings.Join(r.Facts, ", ")
}

func writePicture(b *strings.Builder) {
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, s := range States()[1:] {
		fmt.Fprintf(b, "    %s: %s\n", ident(s), s)
	}
	labels, order := edges()
	for _, e := range order {
		fmt.Fprintf(b, "    %s --> %s: %s\n", ident(e.from), ident(e.to), strings.Join(slices.Compact(labels[e]), " / "))
	}
	fmt.Fprintf(b, "    %s --> [*]\n```\n\n", ident(deleting))
}

// edges are the ways of the picture in the order of the table, and what leads along each.
func edges() (labels map[edge][]string, order []edge) {
	labels = map[edge][]string{}
	for _, r := range mainRows() {
		for _, e := range r.edges() {
			if labels[e] == nil {
				order = append(order, e)
			}
			labels[e] = append(labels[e], label(r))
		}
	}
	return labels, order
}

func (r Row) edges() []edge {
	var all []edge
	for _, from := range r.From {
		for _, to := range r.To {
			if from != to {
				all = append(all, edge{from, to})
			}
		}
	}
	return all
}

// mainRows leaves out what would only clutter the picture: hosts rebuilt from
// their object, and deletions that are held up.
func mainRows() []Row {
	return slices.DeleteFunc(slices.Clone(Table()), func(r Row) bool {
		return slices.Contains(r.Facts, event.Restored) || slices.Contains(r.Facts, event.Forgotten) ||
			(r.Section == event.SectionIntent && slices.Contains(r.From, poweringOff)) ||
			slices.ContainsFunc(r.Facts, func(f string) bool { return strings.HasSuffix(f, "."+string(event.Aborted)) })
	})
}

func ident(s v1alpha1.ProvisioningState) string {
	if s == v1alpha1.StateNone {
		return "[*]"
	}
	return strings.ReplaceAll(string(s), " ", "_")
}

func show(s v1alpha1.ProvisioningState) string {
	if s == v1alpha1.StateNone {
		return "(none)"
	}
	return string(s)
}

func writeRules(b *strings.Builder) {
	b.WriteString("## Which state is it in?\n\nThe first line that is true decides.\n\n| it is | when |\n| --- | --- |\n")
	for _, r := range rules() {
		fmt.Fprintf(b, "| %s | %s |\n", show(r.State), r.Why)
	}
	b.WriteString("\n")
}

func writeMoves(b *strings.Builder) {
	b.WriteString("## What may be recorded\n\nA fact may leave the state as it is, unless «moves» says that it must not.\n\n" +
		"| in | section | fact | may lead to | moves | why, and what must be true |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range Table() {
		moves := ""
		if r.Moves {
			moves = "yes"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", list(r.From), r.Section, strings.Join(r.Facts, ", "), list(r.To), moves, r.Why)
	}
	b.WriteString("\n")
}

func list(l []v1alpha1.ProvisioningState) string {
	switch {
	case len(l) == len(States()):
		return "any state"
	case len(l) == len(States())-1 && !slices.Contains(l, v1alpha1.StateNone):
		return "any state of a known host"
	}
	var names []string
	for _, s := range l {
		names = append(names, show(s))
	}
	return strings.Join(names, ", ")
}

func writeMatrix(b *strings.Builder) {
	b.WriteString("## Every fact in every state\n\n`→` may change the state, `·` is recorded and leaves it as it is, a blank is refused.\n\n| fact |")
	for _, s := range States() {
		fmt.Fprintf(b, " %s |", show(s))
	}
	b.WriteString("\n| --- |" + strings.Repeat(" :-: |", len(States())) + "\n")
	for _, f := range event.Facts() {
		fmt.Fprintf(b, "| %s.%s |", f.Section, f.Name)
		for _, s := range States() {
			fmt.Fprintf(b, " %s |", Verdict(s, f.Section, f.Name))
		}
		b.WriteString("\n")
	}
}

// Verdict is what the table says of a fact in a state: "→" if it may change
// the state, "·" if it is recorded and leaves it, "" if it is refused.
func Verdict(s v1alpha1.ProvisioningState, section event.Section, fact string) string {
	verdict := ""
	for _, r := range Table() {
		if r.Section != section || !slices.Contains(r.From, s) || !slices.Contains(r.Facts, fact) {
			continue
		}
		if slices.ContainsFunc(r.To, func(t v1alpha1.ProvisioningState) bool { return t != s }) {
			return "→"
		}
		verdict = "·"
	}
	return verdict
}
