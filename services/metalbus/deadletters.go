package metalbus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/metalbus/metalbus/pkg/bus"
)

// deadLetters is the bus, as far as dead letters go.
type deadLetters interface {
	DeadLetters(ctx context.Context) iter.Seq2[bus.DeadLetter, error]
	DeadLetter(ctx context.Context, id uint64) (bus.DeadLetter, error)
	ReplayDeadLetter(ctx context.Context, id uint64) error
	DropDeadLetter(ctx context.Context, id uint64) error
}

func (t Tool) deadLetterCommand() *cobra.Command {
	return group("dlq", "Look after messages that no service could handle",
		t.onDeadLetters("list", "List them", 0, 0, "no argument", t.listDeadLetters),
		t.onDeadLetters("show ID", "Show one of them in whole", 1, 1, "one id", t.showDeadLetter),
		t.onDeadLetters("replay ID...", "Have its service look at the host as it is now, and drop it", 1, maxIDs, "ids", each(deadLetters.ReplayDeadLetter)),
		t.onDeadLetters("drop ID...", "Drop it, and do nothing", 1, maxIDs, "ids", each(deadLetters.DropDeadLetter)),
	)
}

// maxIDs is how many dead letters one command takes.
const maxIDs = 1000

// deadLetterAction is what a command does with the dead letters of the ids.
type deadLetterAction func(ctx context.Context, d deadLetters, ids []uint64) error

func (t Tool) onDeadLetters(use, short string, least, most int, what string, do deadLetterAction) *cobra.Command {
	var r *reach
	cmd := &cobra.Command{
		Use: use, Short: short, Args: arguments(least, most, what),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			c, err := t.connect(cmd.Context(), r, cmd.Flags())
			if err != nil {
				return err
			}
			defer c.close()
			return do(cmd.Context(), c, ids)
		},
	}
	r = t.newReach(cmd.Flags())
	return cmd
}

func parseIDs(args []string) ([]uint64, error) {
	ids := make([]uint64, len(args))
	for i, a := range args {
		var err error
		if ids[i], err = strconv.ParseUint(a, 10, 64); err != nil {
			return nil, usageError{fmt.Errorf("id %q: want a number, as `metalbus dlq list` shows it", a)}
		}
	}
	return ids, nil
}

// each does the same with every dead letter, and goes on after an error.
func each(do func(deadLetters, context.Context, uint64) error) deadLetterAction {
	return func(ctx context.Context, d deadLetters, ids []uint64) error {
		var errs []error
		for _, id := range ids {
			errs = append(errs, do(d, ctx, id))
		}
		return errors.Join(errs...)
	}
}

func (t Tool) listDeadLetters(ctx context.Context, d deadLetters, _ []uint64) error {
	table := tabwriter.NewWriter(t.Env.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tWHEN\tSERVICE\tHOST\tREASON\tERROR")
	for l, err := range d.DeadLetters(ctx) {
		if err != nil {
			return errors.Join(err, table.Flush())
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", l.ID, ago(l.At, t.Env.Now()), l.Service, l.UID, l.Reason, dash(l.Error))
	}
	return table.Flush()
}

func (t Tool) showDeadLetter(ctx context.Context, d deadLetters, ids []uint64) error {
	l, err := d.DeadLetter(ctx, ids[0])
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(t.Env.Out, 0, 0, 2, ' ', 0)
	for _, r := range []row{
		{"ID", strconv.FormatUint(l.ID, 10)},
		{"When", stamp(l.At)},
		{"Service", l.Service},
		{"Host", l.UID},
		{"Reason", l.Reason},
		{"Error", dash(l.Error)},
		{"Attempts", strconv.Itoa(l.Attempts)},
		{"Message", fmt.Sprintf("%s of %s, %s", strconv.FormatUint(l.Sequence, 10), l.Stream, l.Subject)},
	} {
		fmt.Fprintf(table, "%s:\t%s\n", r.what, r.is)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(l.Header)) {
		fmt.Fprintf(t.Env.Out, "  %s: %s\n", key, strings.Join(l.Header[key], ", "))
	}
	_, err = fmt.Fprintf(t.Env.Out, "\n%s\n", l.Body)
	return err
}
