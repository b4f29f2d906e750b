package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/pkg/service"
)

func TestExitCodes(t *testing.T) {
	tests := map[string]struct {
		args     []string
		env      map[string]string
		run      error
		validate error
		want     int
		says     string
	}{
		"a program that ends is done":                   {want: 0},
		"a program that cannot go on says why":          {run: errors.New("the bus is closed"), want: 1, says: "probe: the bus is closed"},
		"an unknown flag is wrong usage":                {args: []string{"--colour=red"}, want: 2, says: "--help"},
		"an argument is wrong usage":                    {args: []string{"now"}, want: 2, says: "now"},
		"a bad value in the environment names itself":   {env: map[string]string{"RATE": "s3cret"}, want: 2, says: "RATE"},
		"settings that do not fit each other are wrong": {validate: errors.New("rate and size exclude each other"), want: 2, says: "exclude"},
		"a wrong log format is wrong usage":             {args: []string{"--log-format=xml"}, want: 2, says: `"xml"`},
		"help is no mistake":                            {args: []string{"--help"}, want: 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var rate int
			var said bytes.Buffer
			p := service.Program{
				Name:     "probe",
				Bind:     func(fs *pflag.FlagSet) { fs.IntVar(&rate, "rate", 1, "") },
				Validate: func() error { return tc.validate },
				Run:      func(context.Context, *service.Frame) error { return tc.run },
			}
			got := p.Execute(t.Context(), environment(append(tc.args, "--health-address="), tc.env, &said))
			if got != tc.want {
				t.Errorf("exit code %d, want %d; it said:\n%s", got, tc.want, &said)
			}
			if !strings.Contains(said.String(), tc.says) {
				t.Errorf("it said %q, want it to name %q", &said, tc.says)
			}
			if strings.Contains(said.String(), "s3cret") {
				t.Errorf("it showed a value of the environment: %q", &said)
			}
		})
	}
}

func TestSettingsComeFromFlagsBeforeTheEnvironment(t *testing.T) {
	tests := map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"the default, if nothing else is given": {want: "nats://localhost"},
		"the environment, if there is no flag":  {env: map[string]string{"NATS_URL": "nats://env"}, want: "nats://env"},
		"an empty variable counts as none":      {env: map[string]string{"NATS_URL": ""}, want: "nats://localhost"},
		"the flag before the environment":       {args: []string{"--nats-url=nats://flag"}, env: map[string]string{"NATS_URL": "nats://env"}, want: "nats://flag"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var url string
			var said bytes.Buffer
			p := service.Program{
				Name: "probe",
				Bind: func(fs *pflag.FlagSet) { fs.StringVar(&url, "nats-url", "nats://localhost", "") },
				Run:  func(context.Context, *service.Frame) error { return nil },
			}
			if code := p.Execute(t.Context(), environment(append(tc.args, "--health-address="), tc.env, &said)); code != 0 {
				t.Fatalf("exit code %d: %s", code, &said)
			}
			if url != tc.want {
				t.Errorf("url is %q, want %q", url, tc.want)
			}
		})
	}
}

func TestAnAskedForEndIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var said bytes.Buffer
	p := service.Program{Name: "probe", Run: func(ctx context.Context, _ *service.Frame) error {
		cancel()
		<-ctx.Done()
		return fmt.Errorf("read: %w", ctx.Err())
	}}
	if code := p.Execute(ctx, environment([]string{"--health-address="}, nil, &said)); code != 0 {
		t.Errorf("exit code %d: %s", code, &said)
	}
}

func TestHealthAsksTheRunningProgram(t *testing.T) {
	address := freeAddress(t)
	var mu sync.Mutex
	var trouble error
	running := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	p := service.Program{Name: "probe", Run: func(ctx context.Context, f *service.Frame) error {
		f.Health.Ready("bus", func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			return trouble
		})
		close(running)
		<-ctx.Done()
		return nil
	}}
	ended := make(chan int)
	var log bytes.Buffer
	go func() { ended <- p.Execute(ctx, environment([]string{"--health-address=" + address}, nil, &log)) }()
	<-running

	ask := func() (int, string) {
		var said bytes.Buffer
		code := p.Execute(t.Context(), environment([]string{"health"}, map[string]string{"HEALTH_ADDRESS": address}, &said))
		return code, said.String()
	}
	if code, said := ask(); code != 0 {
		t.Errorf("a ready program: exit code %d: %s", code, said)
	}
	mu.Lock()
	trouble = errors.New("no answer for 31 s")
	mu.Unlock()
	if code, said := ask(); code != 1 || !strings.Contains(said, "bus: no answer for 31 s") {
		t.Errorf("a program that is not ready: exit code %d: %s", code, said)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d: %s", code, &log)
	}
	if code, said := ask(); code != 1 {
		t.Errorf("a program that does not run: exit code %d: %s", code, said)
	}
}

func environment(args []string, env map[string]string, said *bytes.Buffer) service.Environment {
	return service.Environment{
		Args:   args,
		Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Now:    time.Now, Out: said, Err: said,
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
