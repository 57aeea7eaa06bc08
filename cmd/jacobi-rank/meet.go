package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"jacobi/configs"
	"jacobi/halo"
	"jacobi/internal/natsserver"
	"jacobi/internal/rendezvous"
	"jacobi/internal/roster"
	"jacobi/internal/wire"
)

const (
	// tryTimeout bounds one attempt to connect to a server, which may belong to an earlier run and be gone.
	tryTimeout = 2 * time.Second
	// leaveTimeout bounds rank 0's wait for the other ranks to disconnect from its server.
	leaveTimeout = 5 * time.Second
)

// connect connects this rank to the server of its run: the launcher's, the one that nats.url names, or the one that
// rank 0 starts.
func (r *rank) connect(ctx context.Context) error {
	switch {
	case r.alone:
		return nil
	case r.by == roster.ByLauncher:
		return r.connectTo(ctx, r.cfg.NATS, r.cfg.Halo.Timeout)
	case r.cfg.NATS.URL != "":
		if r.id.RunID == "" {
			r.id.RunID = r.job
		}
		if r.id.RunID == "" {
			return fmt.Errorf("nats.url: %s does not tell the ranks of one run from those of another on the same "+
				"server; set %s to a name of this run", r.by, roster.EnvRunID)
		}
		return r.connectTo(ctx, r.cfg.NATS, r.cfg.Halo.Timeout)
	case r.id.Rank == 0:
		return r.serve(ctx)
	default:
		return r.findServer(ctx)
	}
}

func (r *rank) connectTo(ctx context.Context, server configs.NATS, timeout time.Duration) error {
	o := wire.Options{
		Server: server, RunID: r.id.RunID, Name: fmt.Sprintf("jacobi-rank %d", r.id.Rank), Timeout: timeout,
		Logger: r.log, Refused: r.end,
	}
	conn, err := wire.Connect(ctx, o)
	if err != nil {
		return err
	}
	r.onClose(func() error { conn.Close(); return nil })
	r.conn, r.wire, r.fault = conn, o, conn.Fault
	return nil
}

// dialLink opens a separate connection for the rows of one side.
func (r *rank) dialLink(ctx context.Context) (halo.OwnConn, error) {
	o := r.wire
	o.Name += " halo"
	o.Timeout = r.cfg.Halo.Timeout
	o.Quiet = true
	conn, err := wire.Connect(ctx, o)
	if err != nil {
		return nil, err // not conn: a nil *wire.Conn is a non-nil interface
	}
	return conn, nil
}

// rendezvousFile returns the path of the file in which rank 0 publishes the address of its server.
func (r *rank) rendezvousFile() string {
	dir := r.cfg.NATS.Rendezvous
	if dir == "" {
		dir = r.cfg.Output.Dir
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if r.id.RunID != "" {
		return rendezvous.Path(dir, r.id.RunID)
	}
	return rendezvous.Path(dir, r.job)
}

// serve starts the run's server on rank 0 and publishes its address.
func (r *rank) serve(ctx context.Context) error {
	path := r.rendezvousFile()
	if other, err := rendezvous.Read(path); err == nil && r.answers(ctx, other) {
		return fmt.Errorf("%s: another run, whose rank 0 is process %d on %s, meets there; give each its own "+
			"output.dir, nats.rendezvous or %s",
			path, other.PID, other.Host, roster.EnvRunID)
	}
	if r.id.RunID == "" {
		r.id.RunID = rand.Text()
	}
	hosts := r.cfg.NATS.AdvertisedHosts()
	if (roster.Origin{By: r.by, Identity: r.id}).OneNode(os.Environ()) {
		hosts = nil // all ranks are on this node
	} else if hosts == nil {
		var err error
		if hosts, err = natsserver.Addresses(); err != nil {
			return fmt.Errorf("addresses of this machine: %w", err)
		}
	}
	srv, err := natsserver.Start(natsserver.Options{RunID: r.id.RunID, Hosts: hosts, Port: r.cfg.NATS.Port, Log: r.log})
	if err != nil {
		return err
	}
	r.onClose(func() error {
		srv.AwaitLeave(leaveTimeout) // the last messages may still be on their way
		srv.Close()
		return nil
	})
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	at := srv.NATS()
	if hosts != nil {
		at = srv.At(hosts...)
	}
	remove, err := rendezvous.Publish(path, rendezvous.Point{RunID: r.id.RunID, Host: name, PID: os.Getpid(),
		Server: at})
	if err != nil {
		return err
	}
	r.removeRendezvous = remove
	r.onClose(remove)
	return r.connectTo(ctx, srv.NATS(), r.cfg.Halo.Timeout)
}

// answers reports whether the server at p accepts a connection.
func (r *rank) answers(ctx context.Context, p rendezvous.Point) bool {
	conn, err := wire.Connect(ctx, wire.Options{Server: p.Server, RunID: p.RunID, Name: "jacobi-rank",
		Timeout: tryTimeout / 4})
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// findServer waits until rank 0 has published the address of its server, and connects to it.
func (r *rank) findServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Halo.Timeout)
	defer cancel()
	given := r.id.RunID
	err := rendezvous.Await(ctx, r.rendezvousFile(), func(ctx context.Context, p rendezvous.Point) error {
		if given != "" && p.RunID != given {
			return fmt.Errorf("it is of run %s, and this is run %s", p.RunID, given)
		}
		r.id.RunID = p.RunID
		return r.connectTo(ctx, p.Server, tryTimeout)
	})
	if err != nil {
		return &roster.TimeoutError{
			Op: fmt.Sprintf("rank %d: find the server of rank 0 within %v: %v; all ranks have to see output.dir, "+
				"or nats.rendezvous, or be given nats.url", r.id.Rank, r.cfg.Halo.Timeout, err),
			Ranks: []int{0},
		}
	}
	return nil
}
