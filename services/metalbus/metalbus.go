// Package metalbus is the tool for people: it runs a whole installation on a
// laptop, plays the BMCs of a rack, and shows what the bus knows. It owns no
// section of a host and decides nothing about one.
//
// Each command is a file of its own, and is given everything by a Tool; the
// package has no global state.
package metalbus

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/pkg/service"
)

// name is the program's name.
const name = "metalbus"

// Exit codes.
const (
	exitDone  = 0
	exitError = 1
	exitUsage = 2
)

// Tool is the program.
type Tool struct {
	// Services are what `metalbus up` runs, in the order in which they start.
	Services []Service
	// OpenBackends makes the doors to the hardware for them.
	OpenBackends OpenBackends
	// Program is how the user called it.
	Program string
	// Env is what the program finds around it.
	Env service.Environment
}

// usageError is a mistake of whoever started the program.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Execute runs the command that the arguments name and returns the exit code.
// Commands that go on for ever end when ctx does.
func (t Tool) Execute(ctx context.Context) int {
	err := t.root().ExecuteContext(ctx) //nolint:contextcheck // cobra hands it to the commands
	if err == nil || (ctx.Err() != nil && errors.Is(err, context.Canceled)) {
		return exitDone
	}
	fmt.Fprintf(t.Env.Err, "%s: %v\n", name, err)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitError
}

func (t Tool) root() *cobra.Command {
	root := &cobra.Command{
		Use: name, Short: "Run, try and look into metalbus",
		Long: "Run metalbus on a laptop (up, demo), play the BMCs of a rack (sim), and look into any\n" +
			"installation (explain, host, events, bus, dlq).\n\n" +
			"Each flag can also be given by the environment: --data by METALBUS_DATA, and so on.",
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return t.fromEnv(cmd.Flags()) },
	}
	root.AddCommand(
		t.upCommand(), t.demoCommand(), t.simCommand(),
		t.explainCommand(), t.hostCommand(), t.eventsCommand(),
		t.busCommand(), t.deadLetterCommand(),
		t.versionCommand(),
	)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.SetArgs(t.Env.Args)
	root.SetOut(t.Env.Out)
	root.SetErr(t.Env.Err)
	return root
}

// fromEnv sets flags that were not given from the environment. A flag's own
// variable begins with METALBUS_; those that are shared listen to the services'
// variables too. Values are not shown: they may be secret.
func (t Tool) fromEnv(fs *pflag.FlagSet) error {
	var errs []error
	fs.VisitAll(func(f *pflag.Flag) {
		variable, value := t.variable(f)
		if f.Changed || value == "" {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: not a value for --%s (%s)", variable, f.Name, f.Value.Type()))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return usageError{err}
	}
	return nil
}

// variable is the environment variable that speaks for a flag, and its value.
func (t Tool) variable(f *pflag.Flag) (variable, value string) {
	plain := service.EnvName(f.Name)
	variable = "METALBUS_" + plain
	value, ok := t.Env.Lookup(variable)
	if _, also := f.Annotations[sharedFlag]; !ok && also {
		variable = plain
		value, _ = t.Env.Lookup(plain)
	}
	return variable, value
}

// sharedFlag annotates a flag that means the same to the services, and may come
// from the variable that they use.
const sharedFlag = "metalbus.io/shared"

// addShared adds flags and annotates them.
func addShared(to, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{sharedFlag: nil}
		to.AddFlag(f)
	})
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q; see %s --help", args[0], cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(commands...)
	return c
}

// arguments checks their number: what says which ones are wanted.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usageError{fmt.Errorf("want %s; see %s --help", what, cmd.CommandPath())}
		}
		return nil
	}
}
