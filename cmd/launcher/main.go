// Command launcher places the ranks of a run on this machine, starts them, watches them and sums the run up. Its flags are
// those that users of mpirun expect.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"jacobi/internal/launch"
)

func main() { os.Exit(run(os.Args[1:])) }

// exitError is a run that was started and did not end well; what there is to say was said.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func run(args []string) int {
	cmd := newCommand(os.Stdout, os.Stderr)
	cmd.SetArgs(mpiArgs(args))
	err := cmd.Execute()
	if err == nil {
		return launch.ExitOK
	}
	if e, ok := errors.AsType[exitError](err); ok {
		return e.code
	}
	fmt.Fprint(os.Stderr, refusal(err))
	if errors.Is(err, errTimeLimit) {
		return launch.ExitTimeout
	}
	return launch.ExitFailed
}

// refusal says why nothing was started: one line a fault.
func refusal(err error) string {
	lines := strings.Split(err.Error(), "\n")
	if len(lines) == 1 {
		return "launcher: " + lines[0] + "\n"
	}
	return "launcher: nothing was started:\n  " + strings.Join(lines, "\n  ") + "\n"
}
