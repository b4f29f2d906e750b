package plant

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

// A Rack is simulated machines whose BMCs answer over HTTP.
type Rack struct {
	*bmcsim.Sim
	// URL is where they answer, all at the same address.
	URL string
}

// ShortDelays are those of machines that take no longer than is needed to have
// "accepted" and "done" apart.
func ShortDelays() bmcsim.Delays {
	const short = 100 * time.Millisecond
	return bmcsim.Delays{PowerOn: short, PowerOff: short, Shutdown: short, SelfTest: short, Boot: short, Task: short}
}

// StartRack is an empty rack that lasts as long as the test.
func StartRack(tb testing.TB, delays bmcsim.Delays) *Rack {
	tb.Helper()
	sim, err := bmcsim.New(bmcsim.Config{Now: time.Now, Seed: tb.Name(), Delays: delays})
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- sim.Serve(ctx, l) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("simulator: %v", err)
		}
		sim.Close()
	})
	return &Rack{Sim: sim, URL: "http://" + l.Addr().String()}
}

// Did lists what a BMC was told to do and did, in short: "Reset On". "SetBoot
// None" takes an override back.
func Did(machine *bmcsim.Host) []string {
	var list []string
	for _, c := range machine.Commands() {
		if c.Status < 400 {
			list = append(list, strings.TrimSpace(c.Action+" "+c.Args["ResetType"]+c.Args["BootSourceOverrideTarget"]))
		}
	}
	return list
}
