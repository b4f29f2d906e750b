// Command metalbus is the tool for people.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/metalbus/metalbus/pkg/service"
	"github.com/metalbus/metalbus/services/metalbus"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // after the first signal the second has its usual effect
	code := metalbus.Tool{
		Program: os.Args[0], Services: services(), OpenBackends: openBackends,
		Env: service.Environment{Args: os.Args[1:], Lookup: os.LookupEnv, Now: time.Now, Out: os.Stdout, Err: os.Stderr},
	}.Execute(ctx)
	stop()
	os.Exit(code)
}
