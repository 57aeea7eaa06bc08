package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"jacobi/internal/base/version"
	"jacobi/internal/compute/problem"
	"jacobi/internal/observe/events"
)

// newVersionCommand returns the command that prints the version, as --version does.
func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(build{"launcher", version.String(), runtime.Version(),
					runtime.GOOS + "/" + runtime.GOARCH, events.Schema})
			}
			return printVersion(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func printVersion(w io.Writer) error {
	_, err := fmt.Fprintln(w, "launcher", version.String())
	return err
}

// build is what version --json prints.
type build struct {
	Program  string `json:"program"`
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Schema   int    `json:"schema"` // of the events of --json
}

// newExpressionsTopic returns the help topic "expressions", a command that does nothing.
func newExpressionsTopic() *cobra.Command {
	return &cobra.Command{Use: "expressions", Short: "What an expression of the problem may hold", Long: problem.Help()}
}

// completeFlags defines how shells complete the values of flags.
func completeFlags(cmd *cobra.Command) {
	values := map[string][]string{"map-by": {"slot", "node"}, "tag-output": {"rank", "stream", "none"}}
	for _, c := range append(cmd.Commands(), cmd) {
		for name, list := range values {
			if c.Flags().Lookup(name) != nil {
				must(c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list,
					cobra.ShellCompDirectiveNoFileComp)))
			}
		}
		for _, name := range []string{"set", "vary"} {
			if c.Flags().Lookup(name) != nil {
				must(c.RegisterFlagCompletionFunc(name, completeSetting))
			}
		}
		if c.Flags().Lookup("config") != nil {
			must(c.MarkFlagFilename("config", "yaml", "yml", "toml", "json"))
		}
	}
}

// must panics on an error. The calls above cannot fail: the flags exist and have no completion yet.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
