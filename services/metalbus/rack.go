package metalbus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

// mix stands for all hardware profiles in turn.
const mix = "mix"

// rackConfig says what the simulated rack holds.
type rackConfig struct {
	// Hosts is how many there are at least. A rack that is in the state file
	// already may have more.
	Hosts int
	// Profiles are the hosts' hardware profiles in turn, or mix.
	Profiles []string
	// Delay is how long the machines take, as a multiple of the simulator's own
	// delays.
	Delay float64
}

func (c *rackConfig) bind(fs *pflag.FlagSet, hosts int) {
	fs.IntVar(&c.Hosts, "hosts", hosts, "`number` of simulated hosts")
	fs.StringSliceVar(&c.Profiles, "profile", []string{mix}, "hardware `profiles` of the hosts in turn: "+strings.Join(bmcsim.Profiles(), ", ")+", or mix for all")
	fs.Float64Var(&c.Delay, "delay", 1, "how long the machines take, as a `multiple` of the simulator's own delays ("+bootTime().String()+" from power-on to a running system); 0 is no time at all")
}

// bootTime is how long a machine takes from the command to switch it on until
// its system runs.
func bootTime() time.Duration {
	d := bmcsim.DefaultDelays()
	return d.PowerOn + d.SelfTest + d.Boot
}

func (c *rackConfig) validate() error {
	var errs []error
	if c.Hosts < 0 {
		errs = append(errs, fmt.Errorf("hosts %d: want 0 or more", c.Hosts))
	}
	if c.Delay < 0 {
		errs = append(errs, fmt.Errorf("delay %g: want 0 or more", c.Delay))
	}
	for _, p := range c.Profiles {
		if p != mix && !slices.Contains(bmcsim.Profiles(), p) {
			errs = append(errs, fmt.Errorf("profile %q: want one of %s, %s", p, mix, strings.Join(bmcsim.Profiles(), ", ")))
		}
	}
	if len(c.Profiles) > 1 && slices.Contains(c.Profiles, mix) {
		errs = append(errs, errors.New("profile mix stands for all profiles: give it alone"))
	}
	return errors.Join(errs...)
}

// simulator is the configuration for the simulator's library.
func (c *rackConfig) simulator(now func() time.Time) bmcsim.Config {
	cfg := bmcsim.Config{Now: now, Delays: scaled(bmcsim.DefaultDelays(), c.Delay)}
	if !slices.Contains(c.Profiles, mix) {
		cfg.Profiles = c.Profiles
	}
	return cfg
}

func scaled(d bmcsim.Delays, by float64) bmcsim.Delays {
	for _, phase := range []*time.Duration{&d.PowerOn, &d.PowerOff, &d.Shutdown, &d.SelfTest, &d.Boot, &d.Task} {
		*phase = time.Duration(by * float64(*phase))
	}
	return d
}

// rack is the simulator with its address and its memory.
type rack struct {
	sim      *bmcsim.Sim
	listener net.Listener
	host     string // by which clients reach the listener
	file     string // of the snapshot, "" for none
	saved    uint64 // the revision that it shows
	now      func() time.Time
}

// openRack makes the rack, or finds it in the state file with all that its
// machines ran, and opens the address.
func openRack(ctx context.Context, cfg rackConfig, listen, file string, now func() time.Time) (*rack, error) {
	sim, err := restored(cfg.simulator(now), file) //nolint:contextcheck // machines live until the simulator is closed
	if err != nil {
		return nil, err
	}
	r := &rack{sim: sim, file: file, now: now, host: reachable(listen)}
	for len(sim.Hosts()) < cfg.Hosts {
		if _, err := sim.Add(bmcsim.HostSpec{}); err != nil {
			sim.Close()
			return nil, err
		}
	}
	var lc net.ListenConfig
	if r.listener, err = lc.Listen(ctx, "tcp", listen); err != nil {
		sim.Close()
		return nil, fmt.Errorf("open the simulator's address: %w", err)
	}
	return r, nil
}

func restored(cfg bmcsim.Config, file string) (*bmcsim.Sim, error) {
	if file == "" {
		return bmcsim.New(cfg)
	}
	data, err := os.ReadFile(file) //nolint:gosec // whoever started us names it
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bmcsim.New(cfg)
	case err != nil:
		return nil, fmt.Errorf("read the simulator's state: %w", err)
	}
	sim, err := bmcsim.Restore(cfg, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return sim, nil
}

// reachable is the host of an address as clients name it. A name stays a name:
// what is behind it may change.
func reachable(listen string) string {
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || host == "" || (ip != nil && ip.IsUnspecified()) {
		return "127.0.0.1"
	}
	return host
}

// address is where the BMCs answer, host:port.
func (r *rack) address() string {
	_, port, _ := net.SplitHostPort(r.listener.Addr().String())
	return net.JoinHostPort(r.host, port)
}

// url is the same as the beginning of a URL.
func (r *rack) url() string { return "http://" + r.address() }

// image is the address of an image that the simulator serves.
func (r *rack) image() string { return r.url() + imagePath }

// manifests are the Secrets and hosts of the machines from number first on,
// counted from 0.
func (r *rack) manifests(first int, namespace, image string) ([]byte, error) {
	hosts := r.sim.Hosts()
	return bmcsim.Manifests(hosts[min(first, len(hosts)):], bmcsim.ManifestOptions{BaseURL: r.url(), Namespace: namespace, Image: image})
}

const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	graceTime  = 2 * time.Second
	// saveEvery is the least time between two snapshots. Where they take long,
	// they are rarer.
	saveEvery = time.Second
	saveShare = 20
)

// serve answers until ctx ends, and keeps the state file up to date. Before it
// returns, the machines have stopped where they are and are saved.
func (r *rack) serve(ctx context.Context) error {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: r.handler(), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		// Dropped connections are what the simulator does on purpose.
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(r.listener) }()
	err := r.saveUntil(ctx, ended)
	cancel() // event streams end at once
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
	defer stop()
	if server.Shutdown(grace) != nil {
		_ = server.Close() // whoever is left has been warned
	}
	r.sim.Close()
	return errors.Join(err, r.save())
}

// saveUntil saves what changed from time to time, until ctx ends or the server does.
func (r *rack) saveUntil(ctx context.Context, ended <-chan error) error {
	timer := time.NewTimer(saveEvery)
	defer timer.Stop()
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("the simulator's server ended: %w", err)
		case <-ctx.Done():
			return nil
		case <-timer.C:
			began := r.now()
			if err := r.save(); err != nil {
				return err
			}
			timer.Reset(max(saveEvery, saveShare*r.now().Sub(began)))
		}
	}
}

// save writes the state file if something has changed since it was written.
func (r *rack) save() error {
	revision := r.sim.Revision()
	if r.file == "" || revision == r.saved {
		return nil
	}
	data, err := r.sim.Snapshot()
	if err != nil {
		return err
	}
	if err := replaceFile(r.file, data); err != nil {
		return fmt.Errorf("save the simulator's state: %w", err)
	}
	r.saved = revision
	return nil
}

// replaceFile writes a file that only its owner reads, all of it or nothing.
func replaceFile(path string, data []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
