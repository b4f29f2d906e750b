package metalbus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func (t Tool) hostCommand() *cobra.Command {
	return group("host", "Look at hosts", t.hostListCommand(), t.hostShowCommand(), t.hostWakeCommand())
}

// findHosts are the hosts of the name that the bus knows, the present one
// first: names are used again.
func findHosts(ctx context.Context, log hostLog, host string) ([]lifecycle.Host, error) {
	if namespace, short, ok := strings.Cut(host, "/"); !ok || namespace == "" || short == "" {
		return nil, usageError{fmt.Errorf("host %q: want <namespace>/<name>", host)}
	}
	found, broken, err := readHosts(ctx, log)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(h lifecycle.Host) bool { return h.Name() != host })
	if len(found) == 0 && len(broken) > 0 { // it may be one of them
		return nil, errors.Join(slices.Collect(maps.Values(broken))...)
	}
	slices.SortStableFunc(found, func(a, b lifecycle.Host) int {
		if gone(a) != gone(b) {
			return map[bool]int{true: 1, false: -1}[gone(a)]
		}
		return b.Intent.CreatedAt.Compare(a.Intent.CreatedAt)
	})
	return found, nil
}

func findHost(ctx context.Context, log hostLog, host string) (lifecycle.Host, error) {
	found, err := findHosts(ctx, log, host)
	if err != nil {
		return lifecycle.Host{}, err
	}
	if len(found) == 0 {
		return lifecycle.Host{}, fmt.Errorf("the bus knows no host %s: see `metalbus host list`", host)
	}
	return found[0], nil
}

func (t Tool) hostWakeCommand() *cobra.Command {
	var r *reach
	cmd := &cobra.Command{
		Use: "wake NAMESPACE/NAME [SERVICE]", Short: "Have services look at a host again", Args: arguments(1, 2, "a host, and maybe a service"),
		Long: "Have one service, or all of them, look at a host again, though nothing happened to it. It is harmless at\n" +
			"any time: each service looks at the host as it is now. An operation that hangs is taken up again by it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			services := bus.Services()
			if len(args) == 2 {
				if !slices.Contains(services, args[1]) {
					return usageError{fmt.Errorf("service %q: want one of %s", args[1], strings.Join(services, ", "))}
				}
				services = args[1:]
			}
			c, err := t.connect(cmd.Context(), r, cmd.Flags())
			if err != nil {
				return err
			}
			defer c.close()
			return t.wake(cmd.Context(), c.Bus, args[0], services)
		},
	}
	r = t.newReach(cmd.Flags())
	return cmd
}

// waker is the bus, as far as hosts are woken.
type waker interface {
	hostLog
	Wake(ctx context.Context, service, uid, reason string) error
}

func (t Tool) wake(ctx context.Context, b waker, host string, services []string) error {
	h, err := findHost(ctx, b, host)
	if err != nil {
		return err
	}
	for _, service := range services {
		if err := b.Wake(ctx, service, h.UID, "by hand"); err != nil {
			return err
		}
		fmt.Fprintf(t.Env.Out, "%s looks at %s\n", service, host)
	}
	return nil
}
