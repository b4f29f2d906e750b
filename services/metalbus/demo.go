package metalbus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metalbus/metalbus/pkg/backend/redfish"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// demoOptions are what `metalbus demo` is asked for.
type demoOptions struct {
	siteOptions
	limit time.Duration
}

func (t Tool) demoCommand() *cobra.Command {
	var o demoOptions
	var data string
	cmd := &cobra.Command{
		Use: "demo", Short: "Bring simulated hosts to provisioned, and sum it up", Args: arguments(0, 0, "no argument"),
		Long: "Begin anew in a folder of its own, bring all hosts of a simulated rack from nothing to provisioned with a\n" +
			"live ISO, sum up how long that took and what it cost, and stop. What is there can be looked at afterwards\n" +
			"with `metalbus up` in the same folder.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			o.Data, err = newFolder(data)
			o.Grow, o.Demo, o.Backend = true, true, redfish.Name
			o.Bus.Cluster = "default" // as that of up
			if err := errors.Join(err, o.validate(cmd.Flags())); err != nil {
				return usageError{err}
			}
			return t.demo(cmd.Context(), o)
		},
	}
	fs := cmd.Flags()
	o.Rack.bind(fs, 50)
	fs.StringVar(&data, "data", filepath.Join(t.defaultFolder(), "demo"), "`folder` of the demo; what an earlier demo left there is removed")
	fs.StringVarP(&o.Namespace, "namespace", "n", "default", "`namespace` of the hosts")
	fs.StringVar(&o.Kubeapi, "kubeapi", "", "`program` that plays the Kubernetes API; looked for beside metalbus and on the PATH if empty")
	fs.DurationVar(&o.limit, "limit", 5*time.Minute, "`time` within which all hosts have to be provisioned")
	o.Frame.LogFormat = "json"
	return cmd
}

func (t Tool) demo(ctx context.Context, o demoOptions) error {
	if err := o.Data.clear(); err != nil {
		return err
	}
	s := &site{siteOptions: o.siteOptions, tool: t, console: t.newConsole()}
	err := s.demo(ctx, o.limit)
	if err != nil && ctx.Err() != nil {
		err = errors.New("interrupted before all hosts were provisioned")
	}
	if err != nil {
		s.console.print("")
	}
	err = errors.Join(err, s.close())
	if err == nil {
		s.console.print(strings.Join(s.afterDemo(), "\n"))
	}
	return err
}

func (s *site) demo(ctx context.Context, limit time.Duration) error {
	ctx, err := s.open(ctx)
	if err != nil {
		return err
	}
	s.Image = s.rack.image()
	s.startServices(ctx)
	began := s.tool.Env.Now()
	w, err := s.newWatcher(ctx, "metalbus demo")
	if err != nil {
		return cause(ctx, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	if err := w.untilSettled(limited); err != nil {
		return w.explain(err, limit)
	}
	took := s.tool.Env.Now().Sub(began)
	report, err := s.report(ctx, w.fleet.present())
	if err != nil {
		return fmt.Errorf("sum up: %w", err)
	}
	s.console.say("all %s are provisioned, %s after the first was declared", count(report.Hosts, "host"), seconds(took))
	s.console.print(report.text(s.console.style))
	return nil
}

// errLimit is the cause when a demo takes too long.
var errLimit = errors.New("the limit is over")

// explain says which hosts did not get there, and why.
func (w *watcher) explain(err error, limit time.Duration) error {
	if !errors.Is(err, errLimit) {
		return err
	}
	var lines []string
	for _, h := range w.fleet.present() {
		if settled(h) {
			continue
		}
		if lines = append(lines, "  "+h.Name()+" is "+state(lifecycle.Stage(h))+why(h)); len(lines) == shownEvents {
			break
		}
	}
	s := w.fleet.summary()
	if len(lines) == 0 {
		lines = []string{"  Kubernetes does not show it yet"}
	}
	return fmt.Errorf("%d of %s are not as asked within %s:\n%s\nthe services' log is %s",
		s.Total-s.Settled, count(s.Total, "host"), limit, strings.Join(lines, "\n"), w.Data.log())
}

func why(h lifecycle.Host) string {
	if text := lifecycle.WaitsFor(h); text != "" {
		return ": " + text
	}
	return ""
}

func (s *site) afterDemo() []string {
	host := s.rack.sim.Hosts()[0].Name()
	program, data := s.tool.Program, string(s.Data)
	return []string{
		"", "Next, the same hosts again, running on as they were:", "",
		"  " + program + " up --data " + data,
		"", "and in another terminal:", "",
		"  kubectl --kubeconfig " + s.kubeconfig + " get bmh -n " + s.Namespace,
		"  " + program + " events --data " + data + " -f",
		"  " + program + " host show --data " + data + " " + s.Namespace + "/" + host,
	}
}

// clear removes what an earlier demo left in the folder. Of a folder that holds
// anything else nothing is removed.
func (f folder) clear() error {
	entries, err := os.ReadDir(string(f))
	if errors.Is(err, os.ErrNotExist) || (err == nil && len(entries) == 0) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look into the data folder: %w", err)
	}
	if p, _, err := f.readPlan(); err != nil || !p.Demo {
		return usageError{fmt.Errorf("%s holds something else than an earlier demo: empty it, or choose another folder with --data", f)}
	}
	release, err := f.take()
	if err != nil {
		return err
	}
	defer release()
	for _, e := range entries {
		if err := os.RemoveAll(f.path(e.Name())); err != nil {
			return fmt.Errorf("clear the data folder: %w", err)
		}
	}
	return nil
}
