package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jacobi/configs"
	"jacobi/internal/base/suggest"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
)

// mpiFlags are the flags that users of mpirun write with one dash.
var mpiFlags = []string{"-np", "-host", "-hostfile", "-map-by"}

// attached matches -np with its number attached, as in -np2.
var attached = regexp.MustCompile(`^-np(\d+)$`)

// mpiArgs adds the second dash to mpiFlags.
func mpiArgs(args []string) []string {
	out := slices.Clone(args)
	for i, a := range out {
		if a == "--" {
			break
		}
		if m := attached.FindStringSubmatch(a); m != nil {
			out[i] = "--np=" + m[1]
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
	best, ok := suggest.Nearest(name, known)
	switch short := unknown.GetSpecifiedShortnames(); {
	case short != "" && strings.ContainsAny(name, "pPN"):
		return fmt.Errorf("unknown flag -%s: did you mean -np?", name)
	case short != "":
		return fmt.Errorf("unknown flag -%s; see launcher --help", name)
	case slices.Contains(configs.Names(), name):
		return fmt.Errorf("unknown flag --%s: keys are set with --set %s=VALUE", name, name)
	case keyOf(name) != "":
		return fmt.Errorf("unknown flag --%s: keys are set with --set %s=VALUE", name, keyOf(name))
	case !ok:
		return fmt.Errorf("unknown flag --%s; see launcher --help", name)
	}
	return fmt.Errorf("unknown flag --%s: did you mean --%s?", name, best)
}

// keyOf returns the first key whose last part is name; "" if there is none.
func keyOf(name string) string {
	for _, k := range configs.Names() {
		if strings.HasSuffix(k, "."+name) {
			return k
		}
	}
	return ""
}

// noArguments refuses arguments that belong to no flag and suggests what was most likely meant.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	for _, a := range args {
		if slices.Contains([]string{".yaml", ".yml", ".toml", ".json"}, filepath.Ext(a)) {
			return fmt.Errorf("argument %q: a run file is given with --config %s", a, a)
		}
	}
	a := args[0]
	if slices.Contains([]string{"run", "solve", "start"}, a) {
		return fmt.Errorf("argument %q: a run needs no command, as in launcher -np 2 --config run.yaml", a)
	}
	if a == "np" {
		return errors.New(`argument "np": the number of ranks is given with -np, as in -np 2`)
	}
	if _, err := launch.ParseTag(a); err == nil && cmd.Flags().Changed("tag-output") {
		return fmt.Errorf("argument %q: must be joined to its flag, as in --tag-output=%s", a, a)
	}
	if list, err := cmd.Flags().GetStringArray("set"); err == nil {
		for _, s := range list {
			if !strings.Contains(s, "=") {
				return fmt.Errorf("--set %s: must be key=value in one word, as in --set %s=%s", s, s, a)
			}
		}
	}
	if strings.Contains(a, "=") {
		return fmt.Errorf("argument %q: keys are set with --set %s, variables with -x %s", a, a, a)
	}
	if _, err := os.Stat(a); err == nil {
		return fmt.Errorf("argument %q: the launcher starts jacobi-rank by itself and takes no program or file", a)
	}
	if cmd.HasParent() {
		return fmt.Errorf("%s: argument %q belongs to no flag; see launcher %s --help", cmd.Name(), a, cmd.Name())
	}
	if s := cmd.SuggestionsFor(a); len(s) > 0 {
		return fmt.Errorf("unknown command %q: did you mean %s?", a, s[0])
	}
	return fmt.Errorf("unknown command %q; see launcher --help", a)
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
