package stories_test

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// transcript is what came of a story, as its golden sections show it. What may
// differ between two runs that both are right is not in it: how often something
// was looked at, and which of two sections was first where neither waits for the
// other.
func transcript(s *site) map[string]string {
	past := s.history()
	sections := map[string]string{
		"states": states(past), "facts": facts(past), "news": news(past),
		"acts": lines(folded(s.acts())), "machine": s.look() + "\n",
	}
	for name, text := range sections {
		sections[name] = plain(s.tidy(text), past)
	}
	return sections
}

// sectionNames are the golden sections in the order of a file.
func sectionNames() []string { return []string{"states", "facts", "news", "acts", "machine"} }

// states are the states that the host went through.
func states(past []lifecycle.Host) string {
	var list []string
	for _, h := range past {
		s := string(lifecycle.Stage(h))
		if n := len(list); n == 0 || list[n-1] != s {
			list = append(list, s)
		}
	}
	return lines(list)
}

// facts are what was recorded in each section, the state that the host then was
// in, and the section's problem, with how many it has had.
func facts(past []lifecycle.Host) string {
	by := map[event.Section][]string{}
	revisions(past, func(before, after lifecycle.Host) {
		section, m := after.NewestFact()
		if line, ok := factLine(before, after, section, m.Fact); ok {
			by[section] = append(by[section], line)
		}
	})
	var b strings.Builder
	for _, s := range event.Sections() {
		if len(by[s]) > 0 {
			fmt.Fprintf(&b, "%s\n%s", s, lines(folded(by[s])))
		}
	}
	return b.String()
}

func factLine(before, after lifecycle.Host, section event.Section, fact string) (string, bool) {
	from, to := lifecycle.Stage(before), lifecycle.Stage(after)
	begins := strings.HasSuffix(fact, ".begun") || strings.HasSuffix(fact, "."+string(event.Started))
	switch {
	case from != to && begins: // by a write or by word
		fact = strings.TrimSuffix(strings.TrimSuffix(fact, ".begun"), "."+string(event.Started)) + " begins"
	case event.UnderWay(fact), retryGivenUp(before, section, fact), section == event.SectionIntent && fact == event.Changed && from == to:
		return "", false
	case section == event.SectionPower && fact == event.PowerChanged:
		fact += " " + power(*after.Power.On)
	case fact == event.FaultChanged:
		fact += " " + map[bool]string{true: "no control", false: "control"}[after.Power.Fault != ""]
	}
	line := fmt.Sprintf("  %-22s %s", fact, to)
	switch o := lifecycle.OperationalStatus(after); o {
	case "", v1alpha1.OperationalStatusOK, v1alpha1.OperationalStatusError:
	default:
		line += ", " + string(o)
	}
	own := after.Work(section)
	if own.Problem != nil {
		line += ", " + string(own.Problem.Type)
	}
	if own.Failures > 0 {
		line += fmt.Sprintf(" (%d)", own.Failures)
	}
	return line, true
}

// retryGivenUp reports whether a fact gives up one more try of what had failed before.
// Whether one was under way just then is a matter of time, as is how many there were.
func retryGivenUp(before lifecycle.Host, section event.Section, fact string) bool {
	op := before.Work(section).Op
	return op != nil && op.Attempt > 1 && fact == op.Kind.Fact(event.Aborted)
}

// news are the Kubernetes Events, by the section that they come from.
func news(past []lifecycle.Host) string {
	by := map[event.Section][]string{}
	revisions(past, func(before, after lifecycle.Host) {
		section, m := after.NewestFact()
		told := lifecycle.Announce(before, after, section, m.Fact)
		if a := lifecycle.FirmwareNews(before, after); a != nil {
			told = append(told, *a)
		}
		for _, a := range told {
			kind := "Normal"
			if a.Warning {
				kind = "Warning"
			}
			by[section] = append(by[section], fmt.Sprintf("%-7s %s: %s", kind, a.Reason, a.Message))
		}
	})
	var list []string
	for _, s := range event.Sections() {
		list = append(list, by[s]...)
	}
	return lines(list)
}

var counted = regexp.MustCompile(` \(\d+\)$`)

// folded shows what came again and again as one line: how often something is
// tried in vain is a matter of how long that lasts. A story that is about the
// count says so in its script.
func folded(list []string) []string {
	var out []string
	for i := 0; i < len(list); {
		bare := counted.ReplaceAllString(list[i], "")
		n := 1
		for i+n < len(list) && counted.ReplaceAllString(list[i+n], "") == bare {
			n++
		}
		if n == 1 {
			out = append(out, list[i])
		} else {
			out = append(out, bare+", repeatedly")
		}
		i += n
	}
	return out
}

func lines(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, "\n") + "\n"
}

var clockTime = regexp.MustCompile(`\d\d:\d\d:\d\d UTC`)

// plain replaces what is different each time.
func plain(text string, past []lifecycle.Host) string {
	text = clockTime.ReplaceAllString(text, "TIME")
	for _, h := range past {
		if n := h.Registration.Node; n != "" {
			text = strings.ReplaceAll(text, n, "NODE")
		}
	}
	return text
}
