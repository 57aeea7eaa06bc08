// Command launcher places the ranks of a run, starts them, watches them and prints a summary. Its flags are those that
// users of mpirun expect.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/base/logging"
	"jacobi/internal/base/show"
	"jacobi/internal/base/style"
	"jacobi/internal/base/suggest"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
)

func main() { os.Exit(run(os.Args[1:])) }

// brief is what the launcher prints without arguments.
const brief = `launcher solves -div(a grad u) + k2 u = f on a 2D mesh, with one process a rank.

  launcher --config configs/quickstart.yaml
      solves a run file; the results are in its output.dir, by default out/
  launcher --config run.yaml --dry-run
      says what that would do and need, and starts nothing
  launcher --set problem.top=1 --set grid.nx=257
      solves a problem of your own, here a square with one side at 1
  launcher -np 8
      sweeps the benchmark gtc2019: 16384 x 16384 points, a file of 1 GiB
  launcher help solver.method
      tells about a key of the run file
  launcher --help
      lists all flags and commands
`

func run(args []string) int {
	if len(args) == 0 {
		_, _ = os.Stderr.WriteString(brief) // a failed write to stderr cannot be reported
		return launch.ExitUsage
	}
	root := newCommand(os.Stdout, os.Stderr)
	ctx, cancel := context.WithCancel(root.Context())
	defer cancel()
	root.SetContext(awake.Start(ctx, nil)) // time in which this process is stopped does not count for its timeouts
	root.SetArgs(mpiArgs(args))
	cmd, err := root.ExecuteC()
	if _, told := errors.AsType[launch.ExitError](err); err == nil || told {
		return exitCode(err)
	}
	text := refusal(err, wantsJSON(cmd))
	if width := style.Of(os.Stderr).Width; width > 0 {
		text = style.Fold(text, width)
	}
	_ = show.Fprint(os.Stderr, text) // a failed write to stderr cannot be reported
	return exitCode(err)
}

// exit returns an exit code as an error; nil for ExitOK. What was wrong has been printed.
func exit(code int) error {
	if code == launch.ExitOK {
		return nil
	}
	return launch.ExitError{Code: code}
}

// exitCode returns the exit code of a command that ended with err.
func exitCode(err error) int {
	if e, ok := errors.AsType[launch.ExitError](err); ok {
		return e.Code
	}
	switch {
	case err == nil:
		return launch.ExitOK
	case errors.Is(err, errTimeLimit):
		return launch.ExitTimeout
	}
	return launch.ExitFailed
}

// wantsJSON reports whether the flags and files of cmd ask for a log in JSON.
func wantsJSON(cmd *cobra.Command) bool {
	file, _ := cmd.Flags().GetString("config") // "" if cmd does not have the flag
	set, _ := cmd.Flags().GetStringArray("set")
	return configs.LogFormat(configs.Options{File: file, Set: set, Environ: os.Environ()}) == "json"
}

// refusal formats the error of a command that started nothing, one line for each fault.
func refusal(err error, asJSON bool) string {
	lines := strings.Split(show.Values(err.Error()), "\n")
	if asJSON {
		var all strings.Builder
		for _, line := range lines {
			all.Write(logging.Line(zapcore.ErrorLevel, -1, line))
		}
		return all.String()
	}
	if len(lines) == 1 {
		return "launcher: " + lines[0] + "\n"
	}
	return "launcher: nothing was started:\n  " + strings.Join(lines, "\n  ") + "\n"
}

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

// timeLimit is the value of --timeout, a pflag.Value.
type timeLimit struct{ attempt.Limit }

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

func (l *timeLimit) String() string { return l.Text }
func (l *timeLimit) Type() string   { return "duration" }
