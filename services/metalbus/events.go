package metalbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/spf13/cobra"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
)

// eventsOptions are what `metalbus events` is asked for.
type eventsOptions struct {
	host   string
	types  []string
	since  time.Duration
	follow bool
	format string
}

func (t Tool) eventsCommand() *cobra.Command {
	var r *reach
	var o eventsOptions
	cmd := &cobra.Command{
		Use: "events", Short: "Tell what happened to hosts, and what happens", Args: arguments(0, 0, "no argument"),
		Long: "Tell what happened to hosts, from the history, and with -f also what happens from now on.\n\n" +
			"A type is <section>.<fact>, such as power.changed; one that ends in * stands for all that begin so, such as\n" +
			"provisioning.deploy.*. The whole type of a CloudEvent, io.metalbus.host.power.changed.v1, will do as well.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", o.format, "text", "json"); err != nil {
				return err
			}
			c, err := t.connect(cmd.Context(), r, cmd.Flags())
			if err != nil {
				return err
			}
			defer c.close()
			return t.events(cmd.Context(), c, o)
		},
	}
	fs := cmd.Flags()
	r = t.newReach(fs)
	fs.StringVar(&o.host, "host", "", "only this host, `namespace/name`")
	fs.StringSliceVar(&o.types, "type", nil, "only events of these `types`")
	fs.DurationVar(&o.since, "since", time.Hour, "only events of this last `time`; 0 for all that are kept")
	fs.BoolVarP(&o.follow, "follow", "f", false, "go on with what happens")
	fs.StringVarP(&o.format, "output", "o", "text", "`format`: text, or json for a CloudEvent a line")
	return cmd
}

func (t Tool) events(ctx context.Context, log hostLog, o eventsOptions) error {
	filter := bus.HistoryFilter{}
	if o.since > 0 {
		filter.Since = t.Env.Now().Add(-o.since)
	}
	for _, pattern := range o.types {
		filter.Types = append(filter.Types, wholeType(pattern))
	}
	if o.host != "" {
		known, err := findHosts(ctx, log, o.host)
		if err != nil {
			return err
		}
		if len(known) == 1 {
			filter.UID = known[0].UID // others of the name may be in the history alone: all is read then
		}
	}
	var unread []error
	for e, err := range log.History(ctx, filter, o.follow) {
		switch {
		case err != nil:
			unread = append(unread, err) // there may be others that can be read
		case o.host != "" && e.Subject() != o.host:
		default:
			if err := writeEvent(t.Env.Out, e, o.format); err != nil {
				return err
			}
		}
	}
	return errors.Join(unread...)
}

// wholeType is the type of a CloudEvent that a short pattern stands for.
func wholeType(pattern string) string {
	prefix, suffix, _ := strings.Cut(event.Type("*", "*"), "*.*")
	switch {
	case strings.HasPrefix(pattern, prefix):
		return pattern
	case strings.HasSuffix(pattern, "*"):
		return prefix + pattern
	default:
		return prefix + pattern + suffix
	}
}

func writeEvent(out io.Writer, e cloudevents.Event, format string) error {
	if format == "text" {
		_, err := fmt.Fprintln(out, readRecord(e).line())
		return err
	}
	return json.NewEncoder(out).Encode(e)
}
