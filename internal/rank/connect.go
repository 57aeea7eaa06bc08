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
	"jacobi/internal/checkpoint"
	"jacobi/internal/roster"
	"jacobi/internal/wire"
)

// connected is a rank that is connected to the server of its run.
type connected struct {
	*prepared
	runID string
	conn  halo.Conn    // nil for a rank alone
	dial  wire.Options // options of conn; further connections share its count of refused messages
	fault func() error // returns a known fault of conn; nil for a rank alone
	// retract removes the rendezvous file, also if called a second time. It is nil if this rank published none.
	retract func() error
}

// connect connects this rank to the server of its run: the launcher's, the one that nats.url names, or the one that
// rank 0 starts.
func (p *prepared) connect(ctx context.Context, open *closers) (*connected, error) {
	runID, timeout := p.Origin.RunID, p.Config.Halo.Timeout
	switch {
	case p.alone():
		return &connected{prepared: p, runID: cmp.Or(runID, p.Origin.Job, roster.Alone)}, nil
	case p.launched():
		return p.connectTo(ctx, open, p.Config.NATS, runID, timeout)
	case p.Config.NATS.URL != "":
		if runID = cmp.Or(runID, p.Origin.Job); runID == "" {
			return nil, fmt.Errorf("nats.url: %s does not tell the ranks of one run from those of another on the same "+
				"server; set %s to a name of this run", p.Origin.By, roster.EnvRunID)
		}
		return p.connectTo(ctx, open, p.Config.NATS, runID, timeout)
	case p.Origin.Rank == 0:
		return p.serve(ctx, open)
	default:
		return p.findServer(ctx, open)
	}
}

// connectTo connects to a server. timeout includes retries.
func (p *prepared) connectTo(
	ctx context.Context, open *closers, server configs.NATS, runID string, timeout time.Duration,
) (*connected, error) {
	o := wire.Options{
		Server: server, RunID: runID, Name: fmt.Sprintf("jacobi-rank %d", p.Origin.Rank), Timeout: timeout,
		Logger: p.Log, Refused: p.End, Unsealed: new(atomic.Uint64),
	}
	conn, err := wire.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	open.add(func() error { conn.Close(); return nil })
	return &connected{prepared: p, runID: runID, conn: conn, dial: o, fault: conn.Fault}, nil
}

// takeMethod takes the method of the checkpoint from which the run goes on, if the configuration leaves it open. A
// launcher has done so for its ranks. Where no checkpoint can be read, the method stays: checkpoint.Resume names the
// fault.
func (c *connected) takeMethod(ctx context.Context) error {
	place := c.Config.Checkpoint.Resume
	if c.launched() || !c.Config.Solver.Chosen() || c.Probe != nil {
		return nil
	}
	if place != "" {
		if store, only, err := checkpoint.Open(ctx, place, c.rawConn()); err == nil {
			if found, _, err := checkpoint.List(ctx, store, only); err == nil && len(found) > 0 {
				c.Config = found[0].Choose(c.Config)
			}
		}
	}
	if c.Origin.Rank == 0 {
		c.Log.Info("solver.method " + c.Config.Solver.MethodText())
	}
	return configs.Validate(c.Config)
}

// dialLink opens a separate connection for the rows of one side.
func (c *connected) dialLink(ctx context.Context) (halo.OwnConn, error) {
	o := c.dial
	o.Name += " halo"
	o.Timeout = c.Config.Halo.Timeout
	o.Quiet = true
	conn, err := wire.Connect(ctx, o)
	if err != nil {
		return nil, err // not conn: a nil *wire.Conn is a non-nil interface
	}
	return conn, nil
}

// rawConn returns the connection for messages that do not belong to the run; nil for a rank alone.
func (c *connected) rawConn() *nats.Conn {
	if conn, ok := c.conn.(interface{ Raw() *nats.Conn }); ok {
		return conn.Raw()
	}
	return nil
}
