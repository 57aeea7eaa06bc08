package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"jacobi/internal/base/show"
	"jacobi/internal/observe/view"
)

// anyPort is where a page is unless the user says otherwise.
const anyPort = "127.0.0.1:0"

const aboutView = `view serves a page: the field as a heat map with values and zoom, the norms, the ranks and the
result. The page is at the URL that view prints, on this machine's loopback interface; Ctrl-C ends it. ssh -L
reaches the port from another machine.

DIR is the output.dir of a finished run. With the URL of a NATS server, view shows a run that goes on there,
until it ends. A launcher seals the messages of its run with a secret that nobody else has, unless the run has a
nats.secret_file; give it here too.`

const viewExamples = `  launcher view out
  launcher view nats://server:4222 --set nats.secret_file=secret`

func newViewCommand(stderr io.Writer) *cobra.Command {
	var listen, run, config string
	var set []string
	cmd := &cobra.Command{
		Use:     "view {DIR | nats://SERVER}",
		Short:   "Show a run in a browser",
		Long:    aboutView,
		Example: viewExamples,
		Args:    arguments("the directory of a run or the URL of its NATS server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if !isServer(args[0]) {
				return viewFiles(ctx, args[0], listen, stderr)
			}
			n, err := serverOf(args[0], config, set)
			if err != nil {
				return err
			}
			return viewRun(ctx, n, run, listen, stderr)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&listen, "listen", anyPort, "`ADDRESS` of the page, on the loopback interface; port 0 is any free one")
	f.StringVar(&run, "run", "", "`ID` of the run, if several go on at the server")
	f.StringVarP(&config, "config", "c", "", "run `FILE` with the keys under nats")
	f.StringArrayVar(&set, "set", nil, "set a key of the run file, as in `nats.creds=FILE`; repeatable")
	return cmd
}

// viewFiles serves the files in dir until it is interrupted.
func viewFiles(ctx context.Context, dir, listen string, stderr io.Writer) (err error) {
	board := view.NewBoard()
	files, err := view.Open(ctx, dir, board)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	server, err := view.Listen(listen)
	if err != nil {
		return err
	}
	defer server.Close(viewGrace)
	server.Serve(board, files)
	if err := show.Fprint(stderr, "launcher: "+viewAt(server)+"\n"); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
