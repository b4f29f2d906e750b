package metalbus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const (
	// lookTime bounds how long Kubernetes is waited for: the bus says the rest.
	lookTime = 700 * time.Millisecond
	// lately is how many events of a host are told.
	lately = 12
)

func (t Tool) explainCommand() *cobra.Command {
	return group("explain", "Say in words how something is, and why", t.explainHostCommand())
}

func (t Tool) explainHostCommand() *cobra.Command {
	var r *reach
	cmd := &cobra.Command{
		Use: "host [NAMESPACE/]NAME", Short: "Say in words how a host is, what it waits for, and what would help", Args: arguments(1, 1, "a host"),
		Long: "Say in words how a host is and since when, what it waits for, what last went wrong and what to do about it,\n" +
			"what would get it going, and what happened lately. Nobody else is asked for it than the bus and, if it is\n" +
			"within reach, Kubernetes: neither the BMC nor the backend.\n\n" +
			"The namespace may be left out where no other has a host of that name.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, err := t.connect(ctx, r, cmd.Flags())
			if err != nil {
				return err
			}
			defer c.close()
			h, err := namedHost(ctx, c, args[0])
			if err != nil {
				return err
			}
			story, unread := storyOf(ctx, c, h.UID)
			p := page{host: h, story: story, now: t.Env.Now()}
			look, cancel := context.WithTimeout(ctx, lookTime)
			defer cancel()
			p.object, p.trouble = c.object(look, h)
			return errors.Join(p.explain(t.Env.Out, newStyles(t.Env.Out)), unread)
		},
	}
	r = t.newReach(cmd.Flags())
	r.bindKube(cmd.Flags())
	return cmd
}

// namedHost is the host of a name, which lacks its namespace if only one host is
// called so.
func namedHost(ctx context.Context, log hostLog, name string) (lifecycle.Host, error) {
	if strings.Contains(name, "/") {
		return findHost(ctx, log, name)
	}
	all, _, err := readHosts(ctx, log)
	if err != nil {
		return lifecycle.Host{}, err
	}
	var names []string
	for _, h := range all {
		if h.Intent.Name == name {
			names = append(names, h.Name())
		}
	}
	slices.Sort(names)
	switch names = slices.Compact(names); len(names) {
	case 0:
		return lifecycle.Host{}, fmt.Errorf("the bus knows no host %s: see `metalbus host list`", name)
	case 1:
		return findHost(ctx, log, names[0])
	default:
		return lifecycle.Host{}, usageError{fmt.Errorf("there are several hosts %s: say which of %s", name, strings.Join(names, ", "))}
	}
}

// explain tells how the host is, paragraph by paragraph.
func (p page) explain(out io.Writer, st styles) error {
	parts := []string{p.howItIs(st), p.whatWentWrong(st), p.whatOthersDid(), p.whatItWaitsFor(), p.whatHelps(), p.whatIsShown(), p.whatHappened(st)}
	parts = slices.DeleteFunc(parts, func(text string) bool { return text == "" })
	_, err := io.WriteString(out, strings.Join(parts, "\n"))
	return err
}

// howItIs is its state, since when, and what is asked of it.
func (p page) howItIs(st styles) string {
	h := p.host
	text := fmt.Sprintf("%s is %s", st.title.Render(h.Name()), inWords(lifecycle.Stage(h)))
	if gone(h) {
		text = st.title.Render(h.Name()) + " is gone"
	}
	if s := stages(p.story); len(s) > 0 {
		text += fmt.Sprintf(", since %s (%s)", s[len(s)-1].At.UTC().Format("2006-01-02 15:04:05 UTC"), age(s[len(s)-1].At, p.now))
	}
	return text + fmt.Sprintf(".\nIt is to be %s. Its power is %s.\n", asked(h.Intent), power(h))
}

// inWords is a state as a sentence has it.
func inWords(s v1alpha1.ProvisioningState) string {
	if s == v1alpha1.StateNone {
		return "new"
	}
	return string(s)
}

// whatWentWrong is the present problem, or else the last one, which may be over.
func (p page) whatWentWrong(st styles) string {
	if problem := lifecycle.Problem(p.host); problem != nil {
		text := st.bad.Render("Problem") + fmt.Sprintf(" (%s", problem.Type)
		if !problem.At.IsZero() {
			text += ", last seen " + ago(problem.At, p.now)
		}
		if n := lifecycle.Status(p.host).ErrorCount; n > 1 {
			text += fmt.Sprintf(", %d times in a row", n)
		}
		text += "): " + sentence(problem.Message) + "\n"
		if problem.Next != "" {
			text += "  What to do: " + sentence(problem.Next) + "\n"
		}
		return text
	}
	last := p.lastFailure()
	if last == nil {
		return ""
	}
	return fmt.Sprintf("The last failure was %s, and is over or being tried again: %s.\n", ago(last.At, p.now), words(last.Change))
}

// sentence ends in one full stop.
func sentence(text string) string { return strings.TrimRight(text, ". ") + "." }

// lastFailure is the newest event that tells of one, nil if there was none.
func (p page) lastFailure() *record {
	for _, r := range slices.Backward(p.story) {
		if strings.HasSuffix(r.Fact, ".failed") {
			return &r
		}
	}
	return nil
}

// whatOthersDid is what somebody else has done that is still so.
func (p page) whatOthersDid() string {
	var b strings.Builder
	for _, text := range lifecycle.Behind(p.host) {
		b.WriteString("Behind our back: " + sentence(text) + "\n")
	}
	return b.String()
}

func (p page) whatItWaitsFor() string {
	h := p.host
	waits := lifecycle.WaitsFor(h)
	if problem := lifecycle.Problem(h); problem != nil && waits == lifecycle.Message(*problem) {
		return "It waits until that is solved; meanwhile it is tried again by itself, later and later.\n"
	}
	op, _ := h.Op()
	switch {
	case waits == "":
		return ""
	case op == nil:
		return "What it waits for: " + waits + ".\n"
	default:
		return fmt.Sprintf("What it waits for: %s; attempt %d, begun %s.\n", waits, op.Attempt, ago(op.StartedAt, p.now))
	}
}

// whatHelps is what would get the host going.
func (p page) whatHelps() string {
	list := unblocks(p.host)
	if len(list) == 0 {
		if lifecycle.Problem(p.host) == nil && !gone(p.host) {
			return "Nothing holds it up.\n"
		}
		return ""
	}
	return "What gets it going:\n  - " + strings.Join(list, "\n  - ") + "\n"
}

// unblocks are the ways to get a host going, the most likely first.
func unblocks(h lifecycle.Host) []string {
	i := h.Intent
	if i.Paused {
		return []string{"removing the annotation " + v1alpha1.PausedAnnotation + "; nothing is done to the host before, not even for its deletion"}
	}
	var list []string
	add := func(is bool, format string, args ...any) {
		if is {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	leaving := !i.DeletedAt.IsZero()
	add(i.Detached != nil && (!leaving || i.Detached.Delay), "removing the annotation %s: the host is registered anew then, and taken over as it runs", v1alpha1.DetachedAnnotation)
	add(lifecycle.Stage(h) == v1alpha1.StateUnmanaged && !leaving, "giving it the address and the credentials of its BMC: spec.bmc")
	add(missingSecret(h), "creating the Secret %s/%s with the keys username and password", i.Credentials.Namespace, i.Credentials.Name)
	for _, r := range i.Reboots {
		add(r.Key != "" && lifecycle.WantsOff(h), "the client that set the annotation %s/%s taking it away again: until then the host is kept off", v1alpha1.RebootAnnotationPrefix, r.Key)
	}
	add(lifecycle.AwaitsRamdisk(h), "its PreprovisioningImage being ready, whose status says how far it is; see also the log of whoever builds it")
	add(lifecycle.Waiting(h) != nil, "a slot that gets free; it is its turn then by itself")
	if lifecycle.Problem(h) != nil {
		add(true, "a change of its spec or of its Secret: it is tried at once with that")
		add(true, "the annotation %s with any new value: what failed is tried again now", v1alpha1.RetryAnnotation)
	}
	add(stalled(h), "what does not answer being back; it goes on by itself then")
	add(leaving && !i.ForceDelete && (lifecycle.Problem(h) != nil || stalled(h)),
		"the annotation %s, if it has to go at any rate: what then is left undone is told in an event", v1alpha1.ForceDeleteAnnotation)
	return list
}

func missingSecret(h lifecycle.Host) bool {
	c := h.Intent.Credentials
	return c.Name != "" && c.Version == "" && !lifecycle.Leaving(h)
}

// stalled reports whether something beside the host does not answer.
func stalled(h lifecycle.Host) bool {
	return slices.ContainsFunc(event.Sections(), func(s event.Section) bool { return h.Work(s).Stalled != nil })
}

// whatIsShown tells where Kubernetes shows something else than the bus has.
func (p page) whatIsShown() string {
	if p.object == nil {
		return "Kubernetes: " + p.trouble + ".\n"
	}
	return "Kubernetes " + p.kubernetes() + ".\n"
}

// whatHappened are the newest events.
func (p page) whatHappened(st styles) string {
	story := p.story
	if len(story) == 0 {
		return "The history has no events of it.\n"
	}
	title := "All that happened:"
	if len(story) > lately {
		title = fmt.Sprintf("What happened lately, of %d events:", len(story))
		story = story[len(story)-lately:]
	}
	var b strings.Builder
	fmt.Fprintln(&b, st.title.Render(title))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range story {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", ago(r.At, p.now), state(r.Stage), r.what())
	}
	_ = table.Flush() // to memory
	return b.String()
}
