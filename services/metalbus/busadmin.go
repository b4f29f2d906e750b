package metalbus

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/metalbus/metalbus/pkg/bus"
)

func (t Tool) busCommand() *cobra.Command {
	return group("bus", "Set up and check the bus", t.busInitCommand(), t.busAuditCommand())
}

func (t Tool) busInitCommand() *cobra.Command {
	var r *reach
	var o bus.InitOptions
	cmd := &cobra.Command{
		Use: "init", Short: "Make the streams and consumers of the bus, or bring them up to date", Args: arguments(0, 0, "no argument"),
		Long: "Make the streams, consumers and ticks of the bus as this version wants them. It can be repeated at any time:\n" +
			"what is right is kept, and what would lose data is refused. It needs the administrator's credentials.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := t.connect(cmd.Context(), r, cmd.Flags())
			if err != nil {
				return err
			}
			defer c.close()
			report, err := c.Init(cmd.Context(), o)
			table := tabwriter.NewWriter(t.Env.Out, 0, 0, 2, ' ', 0)
			for _, item := range report { // what was done before an error, too
				fmt.Fprintf(table, "%s\t%s\t%s\n", item.Kind, item.Name, item.Outcome)
			}
			if flushed := table.Flush(); err == nil {
				err = flushed
			}
			return err
		},
	}
	fs := cmd.Flags()
	r = t.newReach(fs)
	fs.IntVar(&o.Replicas, "replicas", 1, "`number` of copies of each stream: 3 in production")
	fs.Int64Var(&o.MaxBytes, "max-bytes", 0, "`bytes` that all streams together may hold; 0 is 16 GiB")
	fs.BoolVar(&o.NewEpoch, "new-epoch", false, "declare the log to be another one: once after a restore from a backup")
	return cmd
}

func (t Tool) busAuditCommand() *cobra.Command {
	var r *reach
	cmd := &cobra.Command{
		Use: "audit", Short: "Prove that the log keeps its promises", Args: arguments(0, 0, "no argument"),
		Long: "Read the whole log, and prove what it promises: the revisions of each host have no gap, each section was\n" +
			"written by its own service, and a host had one operation at a time.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := t.connect(cmd.Context(), r, cmd.Flags())
			if err != nil {
				return err
			}
			defer c.close()
			report, err := c.Audit(cmd.Context())
			if err != nil {
				return err
			}
			return t.writeAudit(report)
		},
	}
	r = t.newReach(cmd.Flags())
	return cmd
}

func (t Tool) writeAudit(r bus.AuditReport) error {
	for _, f := range r.Findings {
		fmt.Fprintln(t.Env.Out, f)
	}
	fmt.Fprintf(t.Env.Out, "%s of %s audited: %s\n", count(r.Events, "event"), count(r.Hosts, "host"), count(len(r.Findings), "finding"))
	if n := len(r.Findings); n > 0 {
		return fmt.Errorf("the log breaks its promises: %s", count(n, "finding"))
	}
	return nil
}
