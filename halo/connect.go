package halo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/ballast"
	"jacobi/solver"
)

// Mode says which transports a run may use.
type Mode string

// The modes.
const (
	ModeAuto Mode = "auto" // shared memory where it works, else NATS
	ModeNATS Mode = "nats" // NATS alone, also on one node
	ModeP2P  Mode = "p2p"  // transports within a node alone
	// ModeDirect is as ModeAuto, with TCP in place of NATS where it works.
	ModeDirect Mode = "direct"
)

// Comm carries messages between ranks: whole, once and in the order of Send. Both calls wait for the other rank.
type Comm interface {
	Send(ctx context.Context, to int, tag string, data []byte) error
	Recv(ctx context.Context, from int, tag string) ([]byte, error)
}

// Options are the arguments of Connect.
type Options struct {
	Comm    Comm // for the choice of transports; may be nil if no other rank is a neighbour
	Rank    int
	Members [2]Member // the neighbours, by side, as this rank sees them
	Ends    [2]*End   // by side of this rank (see Ends); nil where there is no neighbour
	Mode    Mode
	Peers   []Peer      // direct transports, in order of preference
	NATS    NATSOptions // of links over NATS; Timeout also bounds Connect
}

// Info names the transport of a side.
type Info struct {
	Transport string
	Why       string // for the report
}

// Links are the open links of a rank, by side; nil and empty where there is no neighbour.
type Links struct {
	Link [2]Link
	Info [2]Info

	meters  [2]*Meter
	ballast []byte // while rows arrive as messages of NATS, which become garbage
}

// Connect opens the links of this rank. Every rank must call it within the timeout. The two ends of a link agree on a
// transport: the lower rank proposes one, and the higher rank tries it and answers. NATS.Conn may be nil if no link is
// over NATS.
func Connect(ctx context.Context, o Options) (*Links, error) {
	if o.NATS.Log == nil {
		o.NATS.Log = zap.NewNop()
	}
	ctx, cancel := awake.WithTimeoutCause(ctx, o.NATS.Timeout, &connectTimeout{o.NATS.Timeout})
	defer cancel()
	links := &Links{}
	if err := connect(ctx, &o, links); err != nil {
		return nil, errors.Join(err, links.Close())
	}
	for side, l := range links.Link {
		if l != nil {
			links.meters[side] = &Meter{Link: l}
		}
		if links.Info[side].Transport == TransportNATS && links.ballast == nil {
			links.ballast = ballast.New()
		}
	}
	return links, nil
}

type connectTimeout struct{ after time.Duration }

func (e *connectTimeout) Error() string { return fmt.Sprintf("no answer within %v", e.after) }

func connect(ctx context.Context, o *Options, links *Links) error {
	if end := o.Ends[solver.Top]; end != nil && end.Neighbour == o.Rank {
		return own(ctx, o, links)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var errs [2]error
	for side, end := range o.Ends {
		if end == nil {
			continue
		}
		if o.Comm == nil {
			return fmt.Errorf("halo: rank %d and rank %d need a comm to find a transport", o.Rank, end.Neighbour)
		}
		h := &handshake{opts: o, end: *end, theirs: o.Members[side]}
		part := h.propose
		if o.Rank > end.Neighbour {
			part = h.respond
		}
		wg.Go(func() {
			links.Link[side], links.Info[side], errs[side] = h.run(ctx, part)
			if errs[side] != nil {
				cancel(errs[side])
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil && errs[1-i] != nil && errors.Is(errs[1-i], err) {
			return err // the other side ended only because of this one
		}
	}
	return errors.Join(errs[:]...)
}

// own links a rank with itself.
func own(ctx context.Context, o *Options, links *Links) (err error) {
	top, bottom := *o.Ends[solver.Top], *o.Ends[solver.Bottom]
	info := Info{TransportMemory, "the rank is its own neighbour"}
	if o.Mode != ModeNATS {
		links.Link[solver.Top], links.Link[solver.Bottom], err = NewMemory(top, bottom, o.NATS.Timeout)
	} else {
		info = Info{TransportNATS, "halo.transport is nats"}
		for side, end := range []End{top, bottom} {
			l, failed := NewNATS(ctx, end, o.NATS)
			if failed != nil {
				return failed
			}
			links.Link[side] = l
		}
	}
	links.Info = [2]Info{info, info}
	return err
}

// Rows returns the links with meters, as an exchange takes them: a nil interface on a side without one.
func (l *Links) Rows() (rows [2]solver.RowLink) {
	for side, m := range l.meters {
		if m != nil {
			rows[side] = m.Rows()
		}
	}
	return rows
}

// Observe calls f with each transfer on a side, in the goroutine that makes it. It is called before the first one.
func (l *Links) Observe(f func(side solver.Side, t Transfer)) {
	for side, m := range l.meters {
		if m != nil {
			m.Observe(func(t Transfer) { f(solver.Side(side), t) })
		}
	}
}

// Traffic returns what went through the links that Rows returned, by side.
func (l *Links) Traffic() (traffic [2]Traffic) {
	for side, m := range l.meters {
		if m != nil {
			traffic[side] = m.Traffic()
		}
	}
	return traffic
}

// NATSStats returns the counters of the link over NATS at a side; nil for other links.
func (l *Links) NATSStats(side solver.Side) *NATSStats {
	if f, ok := l.Link[side].(*FramedLink); ok && f.sockets == nil {
		return new(f.Stats())
	}
	return nil
}

// DirectStats returns the counters of the link over TCP at a side; nil for other links.
func (l *Links) DirectStats(side solver.Side) *DirectStats {
	if f, ok := l.Link[side].(*FramedLink); ok {
		return f.DirectStats()
	}
	return nil
}

// Close closes the links. Call it only after every rank has received its last exchange: until then a neighbour may ask
// for rows again.
func (l *Links) Close() error {
	var errs []error
	for _, link := range l.Link {
		if link != nil {
			errs = append(errs, link.Close())
		}
	}
	return errors.Join(errs...)
}
