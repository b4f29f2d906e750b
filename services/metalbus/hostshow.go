package metalbus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func (t Tool) hostShowCommand() *cobra.Command {
	var r *reach
	cmd := &cobra.Command{
		Use: "show NAMESPACE/NAME", Short: "Show all that is known of a host", Args: arguments(1, 1, "a host"),
		Long: "Show all that is known of a host: what the bus has in each of its sections, the operation and the problem if\n" +
			"there is one, what Kubernetes shows, and its time line.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := t.connect(cmd.Context(), r, cmd.Flags())
			if err != nil {
				return err
			}
			defer c.close()
			h, err := findHost(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			story, unread := storyOf(cmd.Context(), c, h.UID)
			p := page{host: h, story: story, now: t.Env.Now()}
			p.object, p.trouble = c.object(cmd.Context(), h)
			return errors.Join(p.write(t.Env.Out, newStyles(t.Env.Out)), unread)
		},
	}
	r = t.newReach(cmd.Flags())
	r.bindKube(cmd.Flags())
	return cmd
}

// storyOf are all events of a host that can be read; unread tells of the others.
func storyOf(ctx context.Context, log hostLog, uid string) (story []record, unread error) {
	for e, err := range log.History(ctx, bus.HistoryFilter{UID: uid}, false) {
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		story = append(story, readRecord(e))
	}
	return story, unread
}

// object is the host's object in Kubernetes, or why it is not known.
func (c *connection) object(ctx context.Context, h lifecycle.Host) (*v1alpha1.BareMetalHost, string) {
	cluster, err := c.cluster(ctx)
	if err != nil {
		return nil, err.Error()
	}
	if cluster == nil {
		return nil, "not asked; give --kubeconfig"
	}
	o, err := cluster.Host(ctx, h.Intent.Namespace, h.Intent.Name)
	switch {
	case err != nil:
		return nil, err.Error()
	case o == nil || string(o.UID) != h.UID:
		return nil, "the object is gone"
	default:
		return o, ""
	}
}

// page is all that is known of a host.
type page struct {
	host  lifecycle.Host
	story []record
	// object is what Kubernetes has; nil if that is not known, and trouble says why.
	object  *v1alpha1.BareMetalHost
	trouble string
	now     time.Time
}

// row is a line of the page: what, and how it is.
type row struct{ what, is string }

func (p page) write(out io.Writer, st styles) error {
	h := p.host
	rows := []row{
		{"Host", h.Name()},
		{"UID", h.UID},
		{"State", state(lifecycle.Stage(h)) + p.since() + operational(h)},
		{"Power", power(h)},
		{"Asked for", asked(h.Intent)},
		{"BMC", bmcOf(h)},
		{"Backend", backendOf(h)},
	}
	if image := h.Provisioning.Image.URL; image != "" {
		rows = append(rows, row{"Image", image})
	}
	rows = append(rows, p.doing()...)
	rows = append(rows, row{"Kubernetes", p.kubernetes()})
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(table, "%s:\t%s\n", r.what, r.is)
	}
	fmt.Fprintf(table, "\nSECTION\tREVISION\tLAST EVENT\tWHEN\n")
	for _, s := range event.Sections() {
		if m := h.Newest(s); m.Rev > 0 {
			fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", s, m.Rev, m.Fact, ago(m.At, p.now))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(p.story) == 0 {
		_, err := fmt.Fprintln(out, "\nThe history has no events of it.")
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n%s", st.title.Render("Time line from "+stamp(p.story[0].At)), timeLine(p.story))
	return err
}

// since is how long the host has been in its state, if the history knows.
func (p page) since() string {
	if s := stages(p.story); len(s) > 0 {
		return " for " + age(s[len(s)-1].At, p.now)
	}
	return ""
}

func operational(h lifecycle.Host) string {
	if s := lifecycle.OperationalStatus(h); s != "" {
		return ", " + string(s)
	}
	return ""
}

func power(h lifecycle.Host) string {
	text := onOff(h.Power.On)
	if h.Power.Health != "" {
		text += ", health " + h.Power.Health
	}
	if h.Power.Fault != "" {
		text += "; " + h.Power.Fault
	}
	return text
}

func asked(i event.Intent) string {
	text := "offline"
	if i.Spec.Online {
		text = "online"
	}
	if image := i.Spec.Image; image != nil {
		text += ", image " + image.URL
		if image.DiskFormat != nil {
			text += " (" + *image.DiskFormat + ")"
		}
	}
	for what, is := range map[string]bool{"paused": i.Paused, "detached": i.Detached != nil} {
		if is {
			text += ", " + what
		}
	}
	if !i.DeletedAt.IsZero() {
		text += ", to be deleted"
	}
	return text
}

func bmcOf(h lifecycle.Host) string {
	spec := h.Intent.Spec.BMC
	if spec.Address == "" {
		return "none"
	}
	text := spec.Address + ", Secret " + h.Intent.Credentials.Namespace + "/" + h.Intent.Credentials.Name
	switch c := h.Intent.Credentials; {
	case c.Version == "":
		return text + " (not there)"
	case lifecycle.SameCredentials(h.Registration.Good, lifecycle.Credentials(h.Intent)):
		return text + " (accepted)"
	default:
		return text + " (not accepted yet)"
	}
}

func backendOf(h lifecycle.Host) string {
	if h.Registration.Backend == "" {
		return "none yet"
	}
	return h.Registration.Backend + ", node " + h.Registration.Node
}

// doing are the operation and the problem.
func (p page) doing() []row {
	var rows []row
	if op, _ := p.host.Op(); op != nil {
		text := fmt.Sprintf("%s, attempt %d, begun %s", op.Kind, op.Attempt, ago(op.StartedAt, p.now))
		if op.Step != "" {
			text += ", step " + op.Step
		}
		if op.Reason != "" {
			text += ": " + op.Reason
		}
		rows = append(rows, row{"Operation", text})
	}
	if problem := lifecycle.Problem(p.host); problem != nil {
		rows = append(rows, row{"Problem", fmt.Sprintf("%s: %s", problem.Type, problem.Message)})
		if problem.Next != "" {
			rows = append(rows, row{"What to do", problem.Next})
		}
	} else if waits := lifecycle.WaitsFor(p.host); waits != "" {
		rows = append(rows, row{"Waits", waits})
	}
	return rows
}

// kubernetes says what the object shows, and whether that is what the bus has.
func (p page) kubernetes() string {
	if p.object == nil {
		return p.trouble
	}
	shown, want := p.object.Status, lifecycle.Status(p.host)
	text := state(shown.Provisioning.State)
	if shown.OperationalStatus != "" {
		text += ", " + string(shown.OperationalStatus)
	}
	if shown.Provisioning.State == want.Provisioning.State && shown.OperationalStatus == want.OperationalStatus && shown.ErrorMessage == want.ErrorMessage {
		return "shows " + text + ", as the bus has it"
	}
	return "shows " + text + ", and is about to show " + state(want.Provisioning.State)
}
