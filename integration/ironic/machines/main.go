// Machines is a rack of simulated machines for a real Ironic: their BMCs, the
// agents that they boot, the images that they are given, and a page of control
// for tests. It is one program on one port, so that it fits into a container.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "machines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("machines", flag.ContinueOnError)
	listen := flags.String("listen", ":8000", "address to listen on")
	address := flags.String("address", "http://machines:8000", "address of this program, as Ironic reaches it")
	ironic := flags.String("ironic", "http://ironic:6385", "address of Ironic, as the agents reach it")
	hosts := flags.Int("hosts", 6, "how many machines there are")
	profile := flags.String("profile", bmcsim.Dell, "hardware profile of the machines")
	heartbeat := flags.Duration("heartbeat", 30*time.Second, "time between two heartbeats of an agent")
	agents := flags.Bool("agents", true, "play the agents; without, a machine that boots one waits for whoever looks at the page of control")
	if err := flags.Parse(args); err != nil {
		return err
	}
	fleet, err := agent.New(agent.Config{Address: *address, Heartbeat: *heartbeat})
	if err != nil {
		return err
	}
	cfg := bmcsim.Config{
		Now: time.Now, Seed: "machines", Hosts: *hosts, NamePrefix: "machine", Profiles: []string{*profile},
		Delays: bmcsim.Delays{PowerOn: 100 * time.Millisecond, PowerOff: 100 * time.Millisecond, Boot: 100 * time.Millisecond, Task: 500 * time.Millisecond},
		Images: &http.Client{Timeout: time.Minute},
	}
	if *agents {
		cfg.Boot = fleet.Boot
	}
	sim, err := bmcsim.New(cfg)
	if err != nil {
		return err
	}
	defer sim.Close()
	mux := http.NewServeMux()
	mux.Handle("/redfish/", sim.Handler())
	mux.Handle("/redfish", sim.Handler())
	mux.Handle("/agent/", fleet.Handler())
	newFiles(*ironic).routes(mux)
	control{sim, fleet}.routes(mux)
	return serve(ctx, *listen, mux)
}

// serve answers until the program is told to stop.
func serve(ctx context.Context, listen string, h http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 2 * time.Minute} // a busy Ironic takes its time
	ended := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer ended()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
