// Command launcher places the ranks of a run on this machine, starts them, watches them and sums the run up. Its flags
// are those that users of mpirun expect.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"jacobi/configs"
	"jacobi/internal/awake"
	"jacobi/internal/launch"
	"jacobi/internal/logging"
	"jacobi/internal/show"
)

func main() { os.Exit(run(os.Args[1:])) }

// exitError is a run that was started and did not end well; what there is to say was said.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func run(args []string) int {
	root := newCommand(os.Stdout, os.Stderr)
	ctx, cancel := context.WithCancel(root.Context())
	defer cancel()
	root.SetContext(awake.Start(ctx, nil)) // whoever stopped this launcher heard of nobody meanwhile
	root.SetArgs(mpiArgs(args))
	cmd, err := root.ExecuteC()
	if err == nil {
		return launch.ExitOK
	}
	if e, ok := errors.AsType[exitError](err); ok {
		return e.code
	}
	_ = show.Fprint(os.Stderr, refusal(err, wantsJSON(cmd))) // there is nobody to tell of an error
	if errors.Is(err, errTimeLimit) {
		return launch.ExitTimeout
	}
	return launch.ExitFailed
}

// wantsJSON says whether the flags and files that cmd was given ask for a log in JSON.
func wantsJSON(cmd *cobra.Command) bool {
	file, _ := cmd.Flags().GetString("config") // a command without these flags has none
	set, _ := cmd.Flags().GetStringArray("set")
	return configs.LogFormat(configs.Options{File: file, Set: set, Environ: os.Environ()}) == "json"
}

// refusal says why nothing was started: one line a fault.
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
