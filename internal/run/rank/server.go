package rank

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"jacobi/internal/net/natsserver"
	"jacobi/internal/net/rendezvous"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
)

const (
	// tryTimeout bounds one attempt to connect to a server, which may belong to an earlier run and be gone.
	tryTimeout = 2 * time.Second
	// leaveTimeout bounds rank 0's wait for the other ranks to disconnect from its server.
	leaveTimeout = 5 * time.Second
)

// rendezvousFile returns the path of the file in which rank 0 publishes the address of its server.
func (o Options) rendezvousFile() string {
	dir := o.Config.NATS.Rendezvous
	if dir == "" {
		dir = o.Config.Output.Dir
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return rendezvous.Path(dir, cmp.Or(o.Origin.RunID, o.Origin.Job))
}

// serve starts the run's server on rank 0, publishes its address, and connects to it.
func (s *session) serve(ctx context.Context) error {
	path := s.rendezvousFile()
	if other, err := rendezvous.Read(path); err == nil && answers(ctx, other) {
		return fmt.Errorf("%s: another run, whose rank 0 is process %d on %s, meets there; give each its own "+
			"output.dir, nats.rendezvous or %s",
			path, other.PID, other.Host, roster.EnvRunID)
	}
	runID := s.Origin.RunID
	if runID == "" {
		runID = rand.Text()
	}
	hosts := s.Config.NATS.AdvertisedHosts()
	if s.Origin.OneNode(s.Environ) {
		hosts = nil // all ranks are on this node
	} else if hosts == nil {
		var err error
		if hosts, err = natsserver.Addresses(); err != nil {
			return fmt.Errorf("addresses of this machine: %w", err)
		}
	}
	srv, err := natsserver.Start(natsserver.Options{RunID: runID, Hosts: hosts, Port: s.Config.NATS.Port, Log: s.Log})
	if err != nil {
		return err
	}
	s.open.add(func() error {
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
	retract, err := rendezvous.Publish(path, rendezvous.Point{RunID: runID, Host: name, PID: os.Getpid(), Server: at})
	if err != nil {
		return err
	}
	s.open.add(retract)
	s.retract = retract
	return s.connectTo(ctx, srv.NATS(), runID, s.Config.Halo.Timeout)
}

// answers reports whether the server at p accepts a connection.
func answers(ctx context.Context, p rendezvous.Point) bool {
	conn, err := wire.Connect(ctx, wire.Options{Server: p.Server, RunID: p.RunID, Name: "jacobi-rank",
		Timeout: tryTimeout / 4})
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// findServer waits until rank 0 has published the address of its server, and connects to it.
func (s *session) findServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.Config.Halo.Timeout)
	defer cancel()
	given := s.Origin.RunID
	err := rendezvous.Await(ctx, s.rendezvousFile(), func(ctx context.Context, at rendezvous.Point) error {
		if given != "" && at.RunID != given {
			return fmt.Errorf("it is of run %s, and this is run %s", at.RunID, given)
		}
		return s.connectTo(ctx, at.Server, at.RunID, tryTimeout)
	})
	if err != nil {
		return &roster.TimeoutError{
			Op: fmt.Sprintf("rank %d: find the server of rank 0 within %v: %v; all ranks have to see output.dir, "+
				"or nats.rendezvous, or be given nats.url", s.Origin.Rank, s.Config.Halo.Timeout, err),
			Ranks: []int{0},
		}
	}
	return nil
}
