// Command kubeapi is a Kubernetes API for a laptop or a test in one process:
// etcd, an API server with the kinds that metalbus and its chart use, CRDs,
// RBAC, admission webhooks, and the two controllers that people miss at once
// without them, namespace deletion and garbage collection by owner. No kubelet
// and no scheduler: a Deployment or a Service can be stored and checked, and
// nothing comes of it.
//
// When it is ready it prints one line, "ready KUBECONFIG=<file>", to standard
// output. Its folder holds all of its state: a start in the same folder finds
// every object again, also after a crash, and keeps address and credentials,
// so that a kubeconfig once handed out stays valid.
//
// Two commands are for images without a shell or kubectl: "kubeapi health" asks
// the one that runs in a folder whether it is ready, "kubeapi apply" applies
// YAML files to it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "kubeapi:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	command, args := split(args)
	cfg, err := parseConfig(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch command {
	case "":
		if cfg.stopAtEOF {
			ctx = untilEOF(ctx, stdin)
		}
		return serve(ctx, cfg, stdout)
	case "health":
		return askHealth(ctx, cfg.dir)
	case "apply":
		return applyTo(ctx, cfg.dir, cfg.manifests)
	default:
		return fmt.Errorf("%q is no command: use health, apply, or none to run an API", command)
	}
}

// split takes the command off the arguments, if there is one.
func split(args []string) (command string, flags []string) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return "", args
	}
	return args[0], args[1:]
}

// untilEOF ends the context when in ends. The kernel closes a pipe's other end
// however its holder dies, so the program does not outlive a killed parent.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx
}

// serve runs everything until ctx ends, then stops it in the order in which
// the parts need each other: API server and controllers, then etcd.
func serve(ctx context.Context, cfg config, stdout io.Writer) (err error) {
	quiet(cfg.verbosity)
	tune()
	noise := &stderr{verbose: cfg.verbosity > 0}
	defer func() {
		if err != nil {
			noise.turnOn() // to say it
		}
	}()
	dir, err := openFolder(cfg)
	if err != nil {
		return err
	}
	defer dir.close()
	store, err := startEtcd(dir.path, cfg.verbosity)
	if err != nil {
		return fmt.Errorf("start etcd in %s: %w", dir.path, err)
	}
	defer func() {
		noise.turnOff()
		store.stop()
	}()
	api, err := newAPIServer(cfg, dir, store.endpoint)
	if err != nil {
		return err
	}

	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	serving := background(func() error { return api.run(running) })
	working := background(func() error {
		if err := prepare(running, cfg, api, stdout, dir.kubeconfig()); err != nil {
			return err
		}
		return runControllers(running, api.loopback())
	})
	select {
	case <-ctx.Done():
	case err = <-serving:
	case err = <-working:
	}
	noise.turnOff()
	stop()
	<-serving
	<-working
	return err
}

// background runs do. The channel gives its error, and is closed after it.
func background(do func() error) <-chan error {
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- do()
	}()
	return ended
}

// prepare waits until the API answers, applies the manifests and says so.
func prepare(ctx context.Context, cfg config, api *apiServer, stdout io.Writer, kubeconfig string) error {
	if err := api.awaitReady(ctx); err != nil {
		return err
	}
	if err := api.makeNamespaces(ctx); err != nil {
		return err
	}
	if cfg.manifests != "" {
		if err := applyFolder(ctx, api.loopback(), cfg.manifests); err != nil {
			return fmt.Errorf("apply %s: %w", cfg.manifests, err)
		}
	}
	_, err := fmt.Fprintln(stdout, "ready KUBECONFIG="+kubeconfig)
	return err
}
