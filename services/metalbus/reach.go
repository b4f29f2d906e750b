package metalbus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/kube/setup"
)

// connectTime bounds how long NATS may take to answer.
const connectTime = 10 * time.Second

// reach are the flags by which a command finds an installation: one that runs
// on this machine, by its folder, or any other, by its NATS servers.
type reach struct {
	data       string
	bus        bus.Config
	kubeconfig string
}

func (t Tool) newReach(fs *pflag.FlagSet) *reach {
	r := &reach{}
	fs.StringVar(&r.data, "data", t.defaultFolder(), "`folder` of the `metalbus up` to ask")
	bus := pflag.NewFlagSet("", pflag.ContinueOnError)
	r.bus.Bind(bus)
	addShared(fs, bus)
	fs.Lookup("nats-url").Usage = "NATS `servers` of another installation to ask"
	fs.Lookup("nats-url").DefValue = "[]"
	for _, own := range []string{"state-dir", "workers"} { // for services
		_ = fs.MarkHidden(own)
	}
	return r
}

// bindKube adds the flag of commands that look at Kubernetes too.
func (r *reach) bindKube(fs *pflag.FlagSet) {
	fs.StringVar(&r.kubeconfig, "kubeconfig", "", "`file` to reach Kubernetes by; that of the `metalbus up`, or KUBECONFIG, if empty")
}

// connection is an installation within reach.
type connection struct {
	*bus.Bus
	kubeconfig string
}

// connect reaches the installation that the flags name.
func (t Tool) connect(ctx context.Context, r *reach, fs *pflag.FlagSet) (*connection, error) {
	cfg, opts := r.bus, []bus.Option{bus.WithClock(t.Env.Now)}
	kubeconfig, _ := t.Env.Lookup("KUBECONFIG")
	if !fs.Changed("nats-url") {
		here, err := folder(r.data).readRunning()
		if errors.Is(err, errNotRunning) {
			return nil, fmt.Errorf("%w: start one with `metalbus up`, name its folder with --data, or name the NATS servers of another with --nats-url", err)
		}
		if err != nil {
			return nil, err
		}
		cfg, kubeconfig = here.bus(), here.Kubeconfig
		if here.Socket != "" {
			opts = append(opts, bus.WithServer(dial(here.Socket)))
		}
	}
	if r.kubeconfig != "" {
		kubeconfig = r.kubeconfig
	}
	cfg.Name = name
	if err := cfg.Validate(); err != nil {
		return nil, usageError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	b, err := bus.Connect(ctx, cfg, opts...)
	if err != nil {
		return nil, err
	}
	return &connection{Bus: b, kubeconfig: kubeconfig}, nil
}

// close ends the connection. What a command had to say is said by then.
func (c *connection) close() { _ = c.Close() }

// cluster is the installation's Kubernetes API; nil if nobody said how it is reached.
func (c *connection) cluster(ctx context.Context) (*setup.Cluster, error) {
	if c.kubeconfig == "" {
		return nil, nil //nolint:nilnil // the caller goes on without
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	return setup.Open(ctx, c.kubeconfig)
}
