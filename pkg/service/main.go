package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes of a program.
const (
	exitDone  = 0 // it ended as asked
	exitError = 1 // it could not go on
	exitUsage = 2 // its flags or environment are wrong
)

// Program is a service as a program of its own.
type Program struct {
	Name string
	// Short says in a line what it does.
	Short string
	// Bind adds the program's settings to its flags.
	Bind func(*pflag.FlagSet)
	// Validate reports everything that is wrong with them; nil asks nothing.
	Validate func() error
	// Run does the work until its context ends.
	Run func(context.Context, *Frame) error
}

// Main is all that a service's main does. It runs the program until a signal
// asks for its end, or until it cannot go on, and exits; a second signal ends
// it at once. Besides, "NAME health" asks a running one whether it is ready.
func Main(p Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // after the first signal the second has its usual effect
	env := Environment{
		Args: os.Args[1:], Lookup: os.LookupEnv, Now: time.Now, Out: os.Stdout, Err: os.Stderr, //nolint:forbidigo // this is the body of every main
	}
	code := p.Execute(ctx, env)
	stop()
	os.Exit(code)
}

// Environment is what a program finds around it.
type Environment struct {
	Args   []string
	Lookup func(string) (string, bool)
	Now    func() time.Time
	// Out takes what was asked for, Err the log and complaints.
	Out, Err io.Writer
}

// usageError is a mistake of whoever started the program.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Execute runs the program and returns its exit code.
func (p Program) Execute(ctx context.Context, env Environment) int {
	var cfg Config
	root := &cobra.Command{
		Use: p.Name, Short: p.Short, Version: ReadBuild().String(), Args: noArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.settings(cmd.Flags(), &cfg, env); err != nil {
				return usageError{err}
			}
			return p.run(ctx, cfg, env)
		},
	}
	cfg.Bind(root.Flags())
	if p.Bind != nil {
		p.Bind(root.Flags())
	}
	root.AddCommand(healthCommand(ctx, env))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetArgs(env.Args)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	return p.exit(root.ExecuteContext(ctx), env)
}

func (p Program) settings(fs *pflag.FlagSet, cfg *Config, env Environment) error {
	errs := []error{FromEnv(fs, env.Lookup), cfg.Validate()}
	if p.Validate != nil {
		errs = append(errs, p.Validate())
	}
	return errors.Join(errs...)
}

func (p Program) run(ctx context.Context, cfg Config, env Environment) error {
	f, closeFrame, err := Open(ctx, p.Name, cfg, env.Err, env.Now)
	if err != nil {
		return err
	}
	defer closeFrame()
	f.Log.Info("started", keyVersion, f.Build.Version, keyCommit, f.Build.Commit)
	err = p.Run(ctx, f)
	if err != nil && ctx.Err() == nil {
		return err
	}
	f.Log.Info("stopped", keyCause, context.Cause(ctx))
	return nil
}

func (p Program) exit(err error, env Environment) int {
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(env.Err, "%s: %v\n", p.Name, err)
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(env.Err, "see %s --help\n", p.Name)
		return exitUsage
	}
	return exitError
}

func healthCommand(ctx context.Context, env Environment) *cobra.Command {
	var cfg Config
	cmd := &cobra.Command{
		Use: "health", Short: "Ask the one that runs here whether it is ready", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := FromEnv(cmd.Flags(), env.Lookup); err != nil {
				return usageError{err}
			}
			return Probe(ctx, cfg.HealthAddress)
		},
	}
	cfg.bindHealth(cmd.Flags())
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return usageError{err}
	}
	return nil
}
