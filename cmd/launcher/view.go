package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"jacobi/internal/show"
	"jacobi/internal/view"
)

// anyPort is where a page is unless the user says otherwise.
const anyPort = "127.0.0.1:0"

const aboutView = `view serves a page with the files of a finished run: the field as a heat map with values and zoom,
the norms, the ranks and the result. DIR is the run's output.dir. The page is at the URL that view prints,
on this machine's loopback interface; Ctrl-C ends it. ssh -L reaches the port from another machine.`

func newViewCommand(stderr io.Writer) *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:     "view DIR",
		Short:   "Show a run in a browser",
		Long:    aboutView,
		Example: "  launcher view out",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return viewFiles(cmd.Context(), args[0], listen, stderr)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", anyPort, "`ADDRESS` of the page, on the loopback interface; port 0 "+
		"is any free one")
	return cmd
}

// viewFiles serves the files in dir until it is interrupted.
func viewFiles(ctx context.Context, dir, listen string, stderr io.Writer) (err error) {
	board := view.NewBoard()
	files, err := view.Open(dir, board)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	server, err := view.Listen(listen)
	if err != nil {
		return err
	}
	defer server.Close(viewGrace)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	server.Serve(board, files)
	if err := show.Fprint(stderr, "launcher: "+viewAt(server)+"\n"); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
