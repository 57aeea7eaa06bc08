package rank

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/natsserver"
	"jacobi/internal/net/rendezvous"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
	"jacobi/internal/run/checkpoint"
)

// connection is the way to the server of the run.
type connection struct {
	runID string
	conn  pubsub.Conn  // nil for a rank alone
	dial  wire.Options // options of conn; further connections share its count of refused messages
	fault func() error // returns a known fault of conn; nil for a rank alone
	// retract removes the rendezvous file, also if called a second time. It is nil if this rank published none.
	retract func() error
}

// connect connects this rank to the server of its run: the launcher's, the one that nats.url names, or the one that
// rank 0 starts.
func (s *session) connect(ctx context.Context) error {
	runID, timeout := s.Origin.RunID, s.Config.Halo.Timeout
	switch {
	case s.alone():
		s.runID = cmp.Or(runID, s.Origin.Job, roster.Alone)
		return nil
	case s.launched():
		return s.connectTo(ctx, s.Config.NATS, runID, timeout)
	case s.Config.NATS.URL != "":
		if runID = cmp.Or(runID, s.Origin.Job); runID == "" {
			return fmt.Errorf("nats.url: %s does not tell the ranks of one run from those of another on the same "+
				"server; set %s to a name of this run", s.Origin.By, roster.EnvRunID)
		}
		return s.connectTo(ctx, s.Config.NATS, runID, timeout)
	case s.Origin.Rank == 0:
		return s.serve(ctx)
	default:
		return s.findServer(ctx)
	}
}

// connectTo connects to a server. timeout includes retries.
func (s *session) connectTo(ctx context.Context, server configs.NATS, runID string,
	timeout time.Duration) error {
	o := wire.Options{
		Server: server, RunID: runID, Name: fmt.Sprintf("jacobi-rank %d", s.Origin.Rank), Timeout: timeout,
		Logger: s.Log, Refused: s.End, Unsealed: new(atomic.Uint64),
	}
	conn, err := wire.Connect(ctx, o)
	if err != nil {
		return err
	}
	s.open.add(func() error { conn.Close(); return nil })
	s.runID, s.conn, s.dial, s.fault = runID, conn, o, conn.Fault
	return nil
}

// takeMethod takes the method and the type of the checkpoint from which the run goes on, if the configuration leaves
// them open. A launcher has done so for its ranks. Where no checkpoint can be read, they stay: checkpoint.Resume names
// the fault.
func (s *session) takeMethod(ctx context.Context) error {
	if s.launched() || !s.Config.Open() || s.Task != nil {
		return nil
	}
	if place := s.Config.Checkpoint.Resume; place != "" {
		if found, ok := checkpoint.Newest(ctx, place, s.rawConn()); ok {
			s.Config = found.Choose(s.Config)
		}
	}
	if s.Origin.Rank == 0 && s.Config.Solver.Chosen() {
		s.Log.Info("solver.method " + s.Config.Solver.MethodText())
	}
	return configs.Validate(s.Config)
}

// dialLink opens a separate connection for the rows of one side.
func (s *session) dialLink(ctx context.Context) (pubsub.Conn, error) {
	o := s.dial
	o.Name += " halo"
	o.Timeout = s.Config.Halo.Timeout
	o.Quiet = true
	conn, err := wire.Connect(ctx, o)
	if err != nil {
		return nil, err // not conn: a nil *wire.Conn is a non-nil interface
	}
	return conn, nil
}

// rawConn returns the connection for messages that do not belong to the run; nil for a rank alone.
func (c *connection) rawConn() *nats.Conn {
	if conn, ok := c.conn.(interface{ Raw() *nats.Conn }); ok {
		return conn.Raw()
	}
	return nil
}

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
