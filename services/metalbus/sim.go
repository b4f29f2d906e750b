package metalbus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// simOptions are what `metalbus sim` is asked for.
type simOptions struct {
	rackConfig
	listen    string
	state     string
	manifests string
	namespace string
	image     string
}

func (t Tool) simCommand() *cobra.Command {
	var o simOptions
	cmd := &cobra.Command{
		Use: "sim", Short: "Play the BMCs of a rack of machines", Args: arguments(0, 0, "no argument"),
		Long: "Play the BMCs of a rack of machines, with Redfish over HTTP, until interrupted.\n\n" +
			"The same flags give the same rack: names, addresses, passwords. --manifests writes the hosts and\n" +
			"Secrets that belong to it; with - they go to standard output, which is then closed, so that this\n" +
			"applies them and goes on to play:\n\n" +
			"  metalbus sim --hosts 20 --manifests - | kubectl apply -f -\n\n" +
			"What the machines do can be looked at, and they can be made to fail, under /sim/ at the same address:\n\n" +
			"  curl http://127.0.0.1:8000/sim/hosts/sim-1\n" +
			"  curl -X PUT -d '{\"wrongPassword\": true}' http://127.0.0.1:8000/sim/hosts/sim-1/faults",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return usageError{err}
			}
			return t.sim(cmd.Context(), o)
		},
	}
	fs := cmd.Flags()
	o.bind(fs, 10)
	fs.StringVar(&o.listen, "listen", "127.0.0.1:8000", "`address` at which the BMCs answer, host:port")
	fs.StringVar(&o.state, "state", "", "`file` that keeps the machines over restarts; empty begins anew")
	fs.StringVar(&o.manifests, "manifests", "", "`file` for the hosts and Secrets to apply, - for standard output")
	fs.StringVarP(&o.namespace, "namespace", "n", "", "`namespace` of the manifests")
	fs.StringVar(&o.image, "image", "", "`URL` of a live ISO that the manifests ask for")
	return cmd
}

func (t Tool) sim(ctx context.Context, o simOptions) error {
	r, err := openRack(ctx, o.rackConfig, o.listen, o.state, t.Env.Now)
	if err != nil {
		return err
	}
	if err := t.simManifests(r, o); err != nil {
		return errors.Join(err, r.listener.Close())
	}
	// Standard output may be the manifests' and closed by now.
	fmt.Fprintf(t.Env.Err, "%s answer at %s; Ctrl-C stops them\n", r.describe(), r.url())
	if err := r.serve(ctx); err != nil {
		return err
	}
	if o.state != "" {
		fmt.Fprintf(t.Env.Err, "the machines are kept in %s\n", o.state)
	}
	return nil
}

func (t Tool) simManifests(r *rack, o simOptions) error {
	if o.manifests == "" {
		return nil
	}
	text, err := r.manifests(0, o.namespace, o.image)
	if err != nil {
		return err
	}
	if o.manifests != "-" {
		return os.WriteFile(o.manifests, text, 0o600)
	}
	if _, err := t.Env.Out.Write(text); err != nil {
		return fmt.Errorf("write the manifests: %w", err)
	}
	if out, ok := t.Env.Out.(io.Closer); ok {
		return out.Close() // the end of a pipe tells its reader to begin
	}
	return nil
}

// describe counts the BMCs by profile.
func (r *rack) describe() string {
	byProfile := map[string]int{}
	for _, h := range r.sim.Hosts() {
		byProfile[h.Profile()]++
	}
	var parts []string
	for _, p := range slices.Sorted(maps.Keys(byProfile)) {
		parts = append(parts, fmt.Sprintf("%d %s", byProfile[p], p))
	}
	return fmt.Sprintf("%s (%s)", count(len(r.sim.Hosts()), "BMC"), strings.Join(parts, ", "))
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
