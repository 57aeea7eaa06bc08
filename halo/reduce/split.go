package reduce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
	"jacobi/solver"
)

// open decides which ranks share a node and opens this rank's path. Among the ranks that share memory, the lowest
// leads. A rank that cannot map its leader's segment becomes a node of its own.
func open(ctx context.Context, o *Options) (path, string, error) {
	t := o.Comm
	if t.Self().Size == 1 {
		w := window(o.Window)
		return &solo{window: w, kept: make([]solver.Contribution, w.ring())}, "one rank", nil
	}
	groups := t.Groups()
	before := newNodes(groups, nil, o.NATSOnly)
	near := before.ranks(before.leader(t.Self().Rank))
	seg, err := share(ctx, o, near)
	if err != nil {
		return nil, "", err
	}
	alone, err := agree(ctx, t, len(near) > 1 && seg == nil)
	if err != nil {
		return nil, "", errors.Join(err, closeSegment(seg))
	}
	p, about, err := assemble(o, seg, newNodes(groups, alone, o.NATSOnly))
	if err != nil {
		return nil, "", errors.Join(err, closeSegment(seg))
	}
	if err := t.Barrier(ctx, "reduction"); err != nil {
		return nil, "", errors.Join(err, p.close())
	}
	return p, about, nil
}

// share makes the lowest rank of near offer a segment to the others. It returns nil and no error for a rank that is
// alone on its node, or that cannot map the segment.
func share(ctx context.Context, o *Options, near []int) (*shm.Segment, error) {
	const tag = "reduction/segment"
	if len(near) == 1 {
		return nil, nil
	}
	if o.Comm.Self().Rank != near[0] {
		data, err := o.Comm.Recv(ctx, near[0], tag)
		if err != nil {
			return nil, err
		}
		var h shm.Handle
		if err := json.Unmarshal(data, &h); err != nil {
			return nil, fmt.Errorf("offer of shared memory from rank %d: %w", near[0], err)
		}
		want := nodeBytes(window(o.Window), len(near), o.MaxSums)
		if h.Bytes != want {
			o.Log.Warn("no shared memory for the norm", zap.Int("leader", near[0]), zap.Int("bytes", h.Bytes),
				zap.Int("want", want))
			return nil, nil
		}
		seg, err := o.open(h)
		if err != nil {
			o.Log.Warn("no shared memory for the norm", zap.Int("leader", near[0]), zap.Error(err))
			return nil, nil
		}
		return seg, nil
	}
	// The cells of ranks that cannot map the segment stay unused.
	seg, err := shm.Create(nodeBytes(window(o.Window), len(near), o.MaxSums))
	var h shm.Handle // 0 bytes if there is no segment
	if err != nil {
		o.Log.Warn("no shared memory for the norm", zap.Error(err))
	} else {
		h = seg.Handle()
	}
	data, err := json.Marshal(h)
	for i := 1; i < len(near) && err == nil; i++ {
		err = o.Comm.Send(ctx, near[i], tag, data)
	}
	if err != nil {
		return nil, errors.Join(err, closeSegment(seg))
	}
	return seg, nil
}

// agree returns the ranks that cannot map their node's segment. alone says that this rank is one.
func agree(ctx context.Context, t *roster.Comm, alone bool) ([]int, error) {
	return roster.DecideOn(ctx, t, "reduction/alone", alone, func(all []bool) (ranks []int, err error) {
		for r, alone := range all {
			if alone {
				ranks = append(ranks, r)
			}
		}
		return ranks, nil
	})
}

// assemble opens this rank's path.
func assemble(o *Options, seg *shm.Segment, all *nodes) (path, string, error) {
	self, leaders := o.Comm.Self().Rank, all.leaders()
	lead := all.leader(self)
	mine := all.ranks(lead)
	var n *node
	if len(mine) > 1 {
		n = &node{seg: seg, ranks: mine, window: window(o.Window), maxSums: o.MaxSums, spin: o.Spin}
		for cell, r := range mine {
			if r == self {
				n.cell = cell
			}
		}
	} else if err := closeSegment(seg); err != nil {
		return nil, "", err
	}
	switch {
	case len(leaders) == 1:
		return n, fmt.Sprintf("shared memory, %d ranks", len(mine)), nil
	case lead != self:
		return member{n}, fmt.Sprintf("shared memory, %d ranks, led by rank %d among %d nodes", len(mine), lead,
			len(leaders)), nil
	}
	s, err := newStar(o, self, newTree(leaders, self, o.fan), all.ranks,
		func(leader int, handle func([]byte)) (*wire.Stream, error) {
			return o.Comm.Stream(leader, "sum", o.Window+notices, handle)
		})
	if err != nil {
		return nil, "", err
	}
	if n == nil {
		return s, fmt.Sprintf("NATS, one of %d nodes", len(leaders)), nil
	}
	return newLeader(s, n), fmt.Sprintf("shared memory, %d ranks; NATS, one of %d nodes", len(mine), len(leaders)), nil
}

func closeSegment(seg *shm.Segment) error {
	if seg == nil {
		return nil
	}
	return seg.Close()
}
