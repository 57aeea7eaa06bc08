package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// tag is that of a rank's part of the trace.
const tag = "trace"

// Gathering brings what the ranks have recorded into one file.
type Gathering struct {
	comm     *roster.Comm
	recorder *Recorder
	at       time.Time
	zero     int64   // the beginning of the trace, on rank 0
	clock    Reading // of a rank that compares its clock
}

// Begin compares the clocks of the nodes and begins to record. All ranks call it before they sweep.
func Begin(ctx context.Context, comm *roster.Comm, r *Recorder) (*Gathering, error) {
	g := &Gathering{comm: comm, recorder: r}
	var err error
	if g.clock, err = g.compareClocks(ctx); err != nil {
		return nil, err
	}
	g.at, g.zero = time.Now(), r.Now()
	r.Start()
	return g, nil
}

// compareClocks compares the clocks of all kernels on which ranks run with that of rank 0. All ranks call it. The ranks
// that compare get a reading.
func (g *Gathering) compareClocks(ctx context.Context) (reading Reading, err error) {
	of := clockOf(g.comm.Members())
	if self := g.comm.Self().Rank; self > 0 {
		if of[self] != self {
			return reading, nil
		}
		ahead, bound, err := g.comm.CompareClock(ctx, g.recorder.Now)
		return Reading{At: g.recorder.Now(), Ahead: int64(ahead), Error: int64(bound)}, err
	}
	for rank, by := range of {
		if rank > 0 && by == rank {
			if err := g.comm.TellTime(ctx, rank, g.recorder.Now); err != nil {
				return reading, err
			}
		}
	}
	return reading, nil
}

// clockOf returns, by rank, the first rank under the same kernel. Ranks under one kernel have one clock.
func clockOf(members []roster.Member) []int {
	of, first := make([]int, len(members)), map[string]int{}
	for rank, m := range members {
		of[rank] = rank
		if m.Node.Boot == "" {
			continue
		}
		if by, ok := first[m.Node.Boot]; ok {
			of[rank] = by
		} else {
			first[m.Node.Boot] = rank
		}
	}
	return of
}

// part returns what this rank has recorded.
func (g *Gathering) part(ctx context.Context) (Part, error) {
	after, err := g.compareClocks(ctx)
	if err != nil {
		return Part{}, err
	}
	p, err := g.recorder.Part(ctx)
	p.Clock = Clock{Before: g.clock, After: after}
	return p, err
}

// Send sends this rank's part to rank 0.
func (g *Gathering) Send(ctx context.Context) error {
	p, err := g.part(ctx)
	if err != nil {
		return err
	}
	data, err := p.Encode()
	if err != nil {
		return err
	}
	return g.comm.Send(ctx, 0, tag, data)
}

// Write writes the parts of all ranks, one after the other, on rank 0. about says what they do not know, and names has
// the names of the ranks and of their hosts. It takes the parts of all ranks even if it cannot write them, because the
// ranks wait for that. It returns how many passes rank 0 has recorded, and how many it has dropped.
func (g *Gathering) Write(ctx context.Context, file io.Writer, about About, names []Name) (passes, dropped int,
	err error) {
	own, err := g.part(ctx)
	if err != nil {
		return 0, 0, err
	}
	about.Begin, about.Passes, about.Dropped = g.at.Format(time.RFC3339Nano), own.Passes, own.Dropped
	w, of := NewWriter(file, g.zero, len(names)), clockOf(g.comm.Members())
	nodes := map[int]int{} // index in about.Clocks of the node whose clock a rank has compared
	for rank, by := range of {
		part, received := own, error(nil)
		if rank > 0 {
			if part, received = g.receive(ctx, rank); received != nil {
				err = errors.Join(err, fmt.Errorf("part of rank %d: %w", rank, received))
				continue
			}
		}
		if by == rank {
			nodes[rank] = len(about.Clocks)
			about.Clocks = append(about.Clocks, NodeClock{Host: names[rank].Host, Clock: part.Clock,
				Drifts: part.Clock.Drifts()})
		}
		if part.DeviceError > 0 {
			about.GPUs = append(about.GPUs, GPUClock{Rank: rank, Error: part.DeviceError})
		}
		node := &about.Clocks[nodes[by]]
		node.Ranks = append(node.Ranks, rank)
		if writeErr := w.Rank(process(rank, names), part, node.Clock); err == nil {
			err = writeErr
		}
	}
	if err != nil {
		return own.Passes, own.Dropped, err
	}
	return own.Passes, own.Dropped, w.Close(about)
}

func (g *Gathering) receive(ctx context.Context, rank int) (Part, error) {
	data, err := g.comm.Recv(ctx, rank, tag)
	if err != nil {
		return Part{}, err
	}
	return Decode(data)
}

// Name says what a rank is.
type Name struct{ Host, Device string }

// process returns what the trace says about a rank.
func process(rank int, names []Name) Process {
	n, size := names[rank], len(names)
	return Process{Rank: rank, Name: fmt.Sprintf("rank %d on %s: %s", rank, n.Host, n.Device),
		Beside: [2]int{solver.Top: (rank - 1 + size) % size, solver.Bottom: (rank + 1) % size}}
}
