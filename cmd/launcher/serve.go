package main

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/study"
)

const aboutServe = `serve solves problems for another program, on ranks that start once. It reads
requests from standard input, or from the clients of a Unix socket, a JSON
object on each line:

  {"id": 1, "keys": {"grid.nx": 129, "grid.ny": 129, "problem.top": 1}}
  {"cancel": 1}

and answers with events, as --json does. Each event has the id of its request.
The event end is the last one of a request: its exit_code is that of a run
alone, and its error says why a run was refused, cancelled or failed. Its id is
free again then. Requests are done in their order, those of several clients in
turn, and each has the bits of a run alone. With "hash": true, the report has
the SHA-256 of the field; with "progress": true, events tell how far the run is.

Files are written to output.dir, and only those that a request names, as in
"output.field": "field.npy". Files that a request reads are in the directory in
which serve was started. Keys of the start (run, device, halo, nats, output.dir)
are those of the command. At the end of standard input, serve does what was
requested and ends. A client that goes away cancels its requests: one of a
socket that closes its connection, or the reader of standard output.

Exit codes: 0 every request has an end; 1 refused or failed; 130 and 143 ended
by SIGINT and SIGTERM.`

func newServeCommand(stdout, stderr io.Writer) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:     "serve [-np N] [--config FILE] [--set key=value]...",
		Short:   "Solve problems for a program, on ranks that start once",
		Long:    aboutServe,
		Example: `  echo '{"id": 1, "keys": {"problem.top": 1}}' | launcher serve -np 2`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			if o.config == configs.StandardInput && o.socket == "" {
				return errors.New("--config -: standard input is for requests")
			}
			return startServe(cmd.Context(), o, os.Stdin, stdout, stderr)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.restarts, "max-restarts", 0, "start the ranks again up to `N` times when a rank or a host dies, from "+
		"the next request")
	f.StringVar(&o.socket, "socket", "", "take requests at a Unix socket `PATH`, in a directory of mode 0700, and not "+
		"from standard input")
	o.define(f)
	return cmd
}

// serveOptions are the flags of serve.
type serveOptions struct {
	options
	socket string
}

// startServe starts the ranks and does the requests of in, or of the clients of a socket.
func startServe(ctx context.Context, o serveOptions, in io.Reader, stdout, stderr io.Writer) error {
	base, err := o.base()
	if err != nil {
		return err
	}
	start, err := study.StartConfig(base.Config())
	if err != nil {
		return err
	}
	if err := output.CheckFree(start.Output.Dir); err != nil {
		return err
	}
	scr := newScreen(stdout, stderr, o.look(start)).onStderr()
	p, w, err := o.stayers(ctx, start, scr)
	if err != nil {
		return err
	}
	s := newServing(base, start.Run.Ranks)
	leave := func() {}
	if o.socket != "" {
		at, err := listenAt(o.socket)
		if err != nil {
			return err
		}
		leave = sync.OnceFunc(func() { _ = at.close() }) // a socket that stays is replaced
		defer leave()
		s.all.Go(func() { at.accept(ctx, s) })
		scr.Say("requests are taken at " + o.socket)
	} else {
		s.all.Go(func() { s.close(s.attend(ctx, in, stdout, func() { launch.AwaitUnread(unix.Stdout) })) })
	}
	e := &study.Engine{Where: o.where, Restarts: o.restarts, Next: s.give, Done: s.done, Event: s.event,
		Warn: s.warn, Alone: serveAlone,
		Options: attempt.Options{Starter: w, Limit: o.timeout.Limit, Screen: scr, Stdout: scr.data}}
	end, err := e.Run(ctx, p)
	leave()
	if err != nil {
		s.dismiss(ctx, launch.ExitFailed, err.Error())
		return err
	}
	why := "the ranks have ended"
	if end.Err != nil {
		why += ": " + end.Err.Error()
		scr.fail(end.Err.Error())
	}
	code := end.ExitCode()
	if code == launch.ExitOK && !e.Complete() {
		code = launch.ExitFailed
	}
	if lost := s.dismiss(ctx, code, why); code == launch.ExitOK && lost != nil {
		scr.fail("standard output: " + lost.Error())
		code = launch.ExitFailed
	}
	if code == launch.ExitOK {
		return nil
	}
	return launch.ExitError{Code: code}
}
