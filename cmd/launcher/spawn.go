package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"jacobi/internal/base/version"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

// newSpawnCommand returns the command that a launcher on another machine starts over ssh.
func newSpawnCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "spawn",
		Short:  "Start ranks for a launcher on another machine, over stdin and stdout",
		Hidden: true,
		Args:   arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// These signals of a broken connection must not end this process before it has killed the ranks.
			signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
			host, err := os.Hostname()
			if err != nil {
				return fmt.Errorf("host name: %w", err)
			}
			client, _, _ := strings.Cut(os.Getenv("SSH_CONNECTION"), " ")
			g := launch.Greeting{Version: version.String(), Host: host, Node: hosts.ThisMachine(), Client: client}
			return launch.ServeStream(cmd.Context(), os.Stdin, os.Stdout, g, plan.Prepare)
		},
	}
}
