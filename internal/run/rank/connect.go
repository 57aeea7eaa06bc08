package rank

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/configs"
	"jacobi/halo"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
	"jacobi/internal/run/checkpoint"
)

// connection is the way to the server of the run.
type connection struct {
	runID string
	conn  halo.Conn    // nil for a rank alone
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
		if store, only, err := checkpoint.Open(ctx, place, s.rawConn()); err == nil {
			if found, _, err := checkpoint.List(ctx, store, only); err == nil && len(found) > 0 {
				s.Config = found[0].Choose(s.Config)
			}
		}
	}
	if s.Origin.Rank == 0 && s.Config.Solver.Chosen() {
		s.Log.Info("solver.method " + s.Config.Solver.MethodText())
	}
	return configs.Validate(s.Config)
}

// dialLink opens a separate connection for the rows of one side.
func (s *session) dialLink(ctx context.Context) (halo.OwnConn, error) {
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
