package metalbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func (t Tool) hostListCommand() *cobra.Command {
	var r *reach
	var namespace, format string
	cmd := &cobra.Command{
		Use: "list", Short: "List the hosts that the bus knows", Args: arguments(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", format, "", "wide", "json"); err != nil {
				return err
			}
			c, err := t.connect(cmd.Context(), r, cmd.Flags())
			if err != nil {
				return err
			}
			defer c.close()
			hosts, broken, err := presentHosts(cmd.Context(), c, namespace)
			if err != nil {
				return err
			}
			return errors.Join(writeHosts(t.Env.Out, hosts, format, t.Env.Now()), broken)
		},
	}
	fs := cmd.Flags()
	r = t.newReach(fs)
	fs.StringVarP(&namespace, "namespace", "n", "", "`namespace` of the hosts; all if empty")
	fs.StringVarP(&format, "output", "o", "", "`format`: wide or json; a table if empty")
	return cmd
}

// oneOf checks the value of a flag.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return usageError{fmt.Errorf("%s %q: want one of %q", flag, value, allowed)}
}

// presentHosts are the hosts that are there, by name; of all namespaces for "".
// broken tells of those that cannot be read.
func presentHosts(ctx context.Context, log hostLog, namespace string) (hosts []lifecycle.Host, broken, err error) {
	all, unread, err := readHosts(ctx, log)
	for _, h := range all {
		if !gone(h) && (namespace == "" || h.Intent.Namespace == namespace) {
			hosts = append(hosts, h)
		}
	}
	slices.SortFunc(hosts, byName)
	return hosts, errors.Join(slices.Collect(maps.Values(unread))...), err
}

// hostLine is a host in a list; its JSON is for programs.
type hostLine struct {
	Namespace   string         `json:"namespace"`
	Name        string         `json:"name"`
	UID         string         `json:"uid"`
	State       string         `json:"state"`
	Operational string         `json:"operationalStatus,omitempty"`
	PoweredOn   *bool          `json:"poweredOn,omitempty"`
	Operation   string         `json:"operation,omitempty"`
	Problem     *event.Problem `json:"problem,omitempty"`
	Image       string         `json:"image,omitempty"`
	Backend     string         `json:"backend,omitempty"`
	BMC         string         `json:"bmcAddress,omitempty"`
	Revision    uint64         `json:"revision"`
	Changed     time.Time      `json:"changedAt"`
}

func newHostLine(h lifecycle.Host) hostLine {
	_, newest := h.NewestFact()
	line := hostLine{
		Namespace: h.Intent.Namespace, Name: h.Intent.Name, UID: h.UID,
		State: string(lifecycle.Stage(h)), Operational: string(lifecycle.OperationalStatus(h)), PoweredOn: h.Power.On,
		Problem: lifecycle.Problem(h), Image: h.Provisioning.Image.URL, Backend: h.Registration.Backend,
		BMC: h.Intent.Spec.BMC.Address, Revision: h.Rev, Changed: newest.At,
	}
	if op, _ := h.Op(); op != nil {
		line.Operation = string(op.Kind)
	}
	return line
}

func writeHosts(out io.Writer, hosts []lifecycle.Host, format string, now time.Time) error {
	lines := make([]hostLine, len(hosts))
	for i, h := range hosts {
		lines[i] = newHostLine(h)
	}
	if format == "json" {
		return writeIndented(out, lines)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "NAMESPACE\tNAME\tSTATE\tPOWER\tOPERATION\tCHANGED\tPROBLEM"
	if format == "wide" {
		head += "\tREVISION\tBACKEND\tIMAGE\tBMC"
	}
	fmt.Fprintln(table, head)
	for _, l := range lines {
		text := fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", l.Namespace, l.Name, dash(l.State), onOff(l.PoweredOn), dash(l.Operation), ago(l.Changed, now), l.problem())
		if format == "wide" {
			text += fmt.Sprintf("\t%d\t%s\t%s\t%s", l.Revision, dash(l.Backend), dash(l.Image), dash(l.BMC))
		}
		fmt.Fprintln(table, text)
	}
	return table.Flush()
}

func (l hostLine) problem() string {
	if l.Problem == nil {
		return "-"
	}
	return string(l.Problem.Type)
}

func writeIndented(out io.Writer, value any) error {
	to := json.NewEncoder(out)
	to.SetIndent("", "  ")
	return to.Encode(value)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func onOff(on *bool) string {
	switch {
	case on == nil:
		return "unknown"
	case *on:
		return "on"
	default:
		return "off"
	}
}

// ago is how long ago something was, in one unit.
func ago(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return age(at, now) + " ago"
}

// age is the time since something, in one unit.
func age(at, now time.Time) string {
	d := max(0, now.Sub(at))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
