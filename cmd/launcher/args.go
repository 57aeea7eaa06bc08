package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jacobi/configs"
	"jacobi/internal/base/suggest"
	"jacobi/internal/run/attempt"
)

// mpiFlags are the flags that users of mpirun write with one dash.
var mpiFlags = []string{"-np", "-host", "-hostfile", "-map-by"}

// mpiArgs adds the second dash to mpiFlags.
func mpiArgs(args []string) []string {
	out := slices.Clone(args)
	for i, a := range out {
		if a == "--" {
			break
		}
		if number, ok := strings.CutPrefix(a, "-np"); ok && number != "" && strings.Trim(number, "0123456789") == "" {
			out[i] = "--np=" + number
			continue
		}
		if name, _, _ := strings.Cut(a, "="); slices.Contains(mpiFlags, name) {
			out[i] = "-" + a
		}
	}
	return out
}

// flagError explains an error of the flag parser. For an unknown flag it suggests the one that was most likely meant.
func flagError(cmd *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		wanted := map[string]string{"int": "an integer", "duration": "a duration with its unit, such as 30s or 10m",
			"bool": "true or false", "float64Slice": "numbers with commas between them"}
		return fmt.Errorf("--%s %q: must be %s", bad.GetFlag().Name, bad.GetValue(),
			wanted[bad.GetFlag().Value.Type()])
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		name := "--" + bare.GetFlag().Name
		value, _ := pflag.UnquoteUsage(bare.GetFlag())
		return fmt.Errorf("%s: its value is missing, as in %s %s", name, name, value)
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return fmt.Errorf("%w; see launcher --help", err)
	}
	name := unknown.GetSpecifiedName()
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	best, near := suggest.Nearest(name, known)
	switch key, _ := configs.Nearest(name); {
	case unknown.GetSpecifiedShortnames() != "":
		return fmt.Errorf("unknown flag -%s; see launcher --help", name)
	case key == name || strings.HasSuffix(key, "."+name):
		return fmt.Errorf("unknown flag --%s: keys are set with --set %s=VALUE", name, key)
	case !near:
		return fmt.Errorf("unknown flag --%s; see launcher --help", name)
	}
	return fmt.Errorf("unknown flag --%s: did you mean --%s?", name, best)
}

// noArguments refuses arguments that belong to no flag.
func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasParent():
		return fmt.Errorf("%s: argument %q belongs to no flag; see launcher %[1]s --help", cmd.Name(), args[0])
	}
	if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
		return fmt.Errorf("argument %q: did you mean %s?", args[0], s[0])
	}
	return fmt.Errorf("argument %q: a run file is given with --config, a key with --set; launcher --help lists "+
		"commands", args[0])
}

// arguments returns a check for exactly these arguments.
func arguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s: %s is missing; see launcher %s --help", cmd.Name(), names[len(args)], cmd.Name())
		case len(args) > len(names):
			return fmt.Errorf("%s: argument %q is one too many; see launcher %s --help", cmd.Name(), args[len(names)],
				cmd.Name())
		}
		return nil
	}
}

// timeLimit is the value of --timeout.
type timeLimit struct{ attempt.Limit }

// Set implements pflag.Value.
func (l *timeLimit) Set(text string) (err error) {
	l.Text = text
	l.Left, err = time.ParseDuration(text)
	return err
}

// errTimeLimit says that the time limit ended the checks before a run.
var errTimeLimit = errors.New("the time is over")

// bound returns a context that ends at the limit.
func (l *timeLimit) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.Left == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, l.Left, fmt.Errorf("--timeout %s: %w", l.Text, errTimeLimit))
}

// String implements pflag.Value.
func (l *timeLimit) String() string { return l.Text }

// Type implements pflag.Value.
func (l *timeLimit) Type() string { return "duration" }
