// Command launcher places the ranks of a run, starts them, watches them and prints a summary. Its flags are those that
// users of mpirun expect.
package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/base/logging"
	"jacobi/internal/base/show"
	"jacobi/internal/base/style"
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
