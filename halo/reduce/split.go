package reduce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"jacobi/internal/roster"
	"jacobi/internal/shm"
	"jacobi/solver"
)

// open decides which ranks share a node and opens this rank's path. Among the ranks that share memory, the lowest
// leads.
// A rank that cannot map its leader's segment becomes a node of its own.
func open(ctx context.Context, o *Options) (path, string, error) {
	t := o.Team
	self := t.Self().Rank
	if t.Self().Size == 1 {
		w := window(o.Window)
		return &solo{window: w, kept: make([]solver.Contribution, w.ring())}, "one rank", nil
	}
	near := neighbours(t.Members(), self, o.NATSOnly)
	seg, err := share(ctx, o, near)
	if err != nil {
		return nil, "", err
	}
	alone, err := agree(ctx, t, len(near) > 1 && seg == nil)
	if err != nil {
		return nil, "", errors.Join(err, closeSegment(seg))
	}
	leaders := leadersOf(t.Members(), alone, o.NATSOnly)
	p, about, err := assemble(ctx, o, seg, leaders)
	if err != nil {
		return nil, "", errors.Join(err, closeSegment(seg))
	}
	if err := t.Barrier(ctx, "reduction"); err != nil {
		return nil, "", errors.Join(err, p.close())
	}
	return p, about, nil
}

// neighbours returns the ranks that share memory with self, and self, ascending; self alone if alone is set.
func neighbours(members []roster.Member, self int, alone bool) []int {
	var near []int
	for r, m := range members {
		if r == self || !alone && roster.InOneMemory(m, members[self]) {
			near = append(near, r)
		}
	}
	return near
}

// share makes the lowest rank of near offer a segment to the others. It returns nil and no error for a rank that is
// alone on its node, or that cannot map the segment.
func share(ctx context.Context, o *Options, near []int) (*shm.Segment, error) {
	const tag = "reduction/segment"
	if len(near) == 1 {
		return nil, nil
	}
	if o.Team.Self().Rank != near[0] {
		data, err := o.Team.Recv(ctx, near[0], tag)
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
		err = o.Team.Send(ctx, near[i], tag, data)
	}
	if err != nil {
		return nil, errors.Join(err, closeSegment(seg))
	}
	return seg, nil
}

// agree returns the ranks that cannot map their node's segment. alone says that this rank is one.
func agree(ctx context.Context, t *roster.Team, alone bool) ([]int, error) {
	own, err := json.Marshal(alone)
	if err != nil {
		return nil, err
	}
	parts, err := t.Gather(ctx, "reduction/alone", own)
	if err != nil {
		return nil, err
	}
	var ranks []int
	for r, part := range parts {
		var alone bool
		if err := json.Unmarshal(part, &alone); err != nil {
			return nil, fmt.Errorf("shared memory of rank %d: %w", r, err)
		}
		if alone {
			ranks = append(ranks, r)
		}
	}
	all, err := json.Marshal(ranks)
	if err != nil {
		return nil, err
	}
	if all, err = t.Broadcast(ctx, "reduction/alone", all); err != nil {
		return nil, err
	}
	ranks = nil
	if err := json.Unmarshal(all, &ranks); err != nil {
		return nil, fmt.Errorf("ranks without shared memory: %w", err)
	}
	for _, r := range ranks {
		if r < 0 || r >= t.Self().Size {
			return nil, fmt.Errorf("ranks without shared memory: there is no rank %d", r)
		}
	}
	return ranks, nil
}

// leadersOf returns, by rank, the leader of that rank's node: the lowest rank with which it shares memory, or itself if
// it is one of alone or if each rank is a node of its own.
func leadersOf(members []roster.Member, alone []int, each bool) []int {
	leaders, lowest := make([]int, len(members)), map[shm.Node]int{}
	for r, m := range members {
		leaders[r] = r
		if each || !roster.InOneMemory(m, m) {
			continue
		}
		if low, known := lowest[m.Node]; known {
			leaders[r] = low
		} else {
			lowest[m.Node] = r
		}
	}
	for _, r := range alone {
		leaders[r] = r
	}
	return leaders
}

// assemble opens this rank's path, given the leader of every rank's node.
func assemble(ctx context.Context, o *Options, seg *shm.Segment, leaders []int) (path, string, error) {
	self := o.Team.Self().Rank
	nodes := map[int][]int{} // by leader
	for r, l := range leaders {
		nodes[l] = append(nodes[l], r)
	}
	mine := nodes[leaders[self]]
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
	case len(nodes) == 1:
		return n, fmt.Sprintf("shared memory, %d ranks", len(mine)), nil
	case leaders[self] != self:
		return member{n}, fmt.Sprintf("shared memory, %d ranks, led by rank %d among %d nodes", len(mine),
			leaders[self], len(nodes)), nil
	}
	s, err := newStar(ctx, o, nodes)
	if err != nil {
		return nil, "", err
	}
	if n == nil {
		return s, fmt.Sprintf("NATS, one of %d nodes", len(nodes)), nil
	}
	return newLeader(s, n), fmt.Sprintf("shared memory, %d ranks; NATS, one of %d nodes", len(mine), len(nodes)), nil
}

func closeSegment(seg *shm.Segment) error {
	if seg == nil {
		return nil
	}
	return seg.Close()
}
