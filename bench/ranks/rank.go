package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/halo"
	"jacobi/halo/reduce"
	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
	"jacobi/solver"
)

const (
	runID = "simulated"
	depth = 1
)

// rank is one simulated rank.
type rank struct {
	number, of int
	node       int // ranks of a node
	passes     int
	server     configs.NATS
	timeout    time.Duration
	life       context.Context // of the ranks of this process: it ends when one of them fails

	conn    *wire.Conn
	comm    *roster.Comm
	links   *halo.Links
	reducer *reduce.Reducer
}

// connect connects to the server.
func (r *rank) connect(ctx context.Context) (err error) {
	r.conn, err = r.dial(ctx)
	return err
}

func (r *rank) dial(ctx context.Context) (*wire.Conn, error) {
	return wire.Connect(ctx, wire.Options{Server: r.server, RunID: runID, Name: fmt.Sprint("rank ", r.number),
		Timeout: r.timeout})
}

// join joins the other ranks, with an entry as large as that of a real rank.
func (r *rank) join(context.Context) (err error) {
	at, local := r.number/r.node, r.number%r.node
	first := at * r.node
	hash := fmt.Sprintf("%064d", 1)
	extra, err := json.Marshal(map[string]any{"cores": make([]uint64, 16)})
	if err != nil {
		return err
	}
	r.comm, err = roster.Join(r.life, r.conn, roster.Member{
		Identity: roster.Identity{RunID: runID, Rank: r.number, Size: r.of, LocalRank: local,
			LocalSize: min(r.node, r.of-first)},
		Version: "simulated", ConfigHash: hash, Functions: hash, FirstRows: hash, Platform: "linux/amd64",
		Host: fmt.Sprintf("node%05d", at), PID: 1000 + r.number*7919%1000000, // not one after the other
		Node:   shm.Node{Boot: fmt.Sprintf("%036d", at), PIDNamespace: "4026531836"},
		Device: "cpu", Depth: 8, MaxSweeps: 16, Part: roster.Part{MaxAbs: float64(r.number) / 7}, Extra: extra,
	}, r.timeout)
	if err != nil {
		return err
	}
	return r.comm.KeepAlive(r.timeout)
}

// link opens the links to the neighbours.
func (r *rank) link(ctx context.Context) (err error) {
	mesh := solver.Mesh{NX: 1024, NY: 8*r.of + 2, DType: solver.Float32}
	stripes, err := solver.Partition(mesh.Interior(), r.of, depth)
	if err != nil {
		return err
	}
	ends := halo.Ends(halo.RunIDOf(runID), mesh, stripes, depth, r.number)
	var members [2]halo.Member
	for side, end := range ends {
		if end != nil {
			m := r.comm.Member(end.Neighbour)
			shares, why := roster.SharesMemory(r.comm.Self(), m)
			members[side] = halo.Member{Host: m.Host, SharesMemory: shares, Why: why}
		}
	}
	r.links, err = halo.Connect(ctx, halo.Options{Rank: r.number, Members: members, Ends: ends, Mode: halo.ModeAuto,
		Peers: []halo.Peer{halo.SharedMemory{Options: halo.SharedOptions{Timeout: r.timeout}}},
		NATS: halo.NATSOptions{Conn: r.conn, Prefix: r.comm.Prefix(), Log: zap.NewNop(), Timeout: r.timeout,
			Dial: func(ctx context.Context) (halo.OwnConn, error) {
				conn, err := r.dial(ctx)
				if err != nil {
					return nil, err // not conn: a nil *wire.Conn is a non-nil interface
				}
				return conn, nil
			}}})
	return err
}

// open opens the sum over all ranks.
func (r *rank) open(ctx context.Context) (err error) {
	r.reducer, err = reduce.New(ctx, reduce.Options{Comm: r.comm, MaxSums: 1, Window: 2, Timeout: r.timeout})
	return err
}

// run exchanges rows and adds a sum, again and again.
func (r *rank) run(ctx context.Context) error {
	rows := make([]byte, 4*1024*depth)
	for pass := range r.passes {
		for _, l := range r.links.Link {
			if l == nil {
				continue
			}
			if err := l.Send(ctx, solver.ExchangeNumber(pass+1), rows); err != nil {
				return err
			}
		}
		one := solver.Contribution{Sums: []solver.Sum{{Limbs: [3]uint64{1}}}}
		if err := r.reducer.Post(ctx, uint64(pass), one); err != nil {
			return err
		}
		for _, l := range r.links.Link {
			if l == nil {
				continue
			}
			if err := l.Recv(ctx, solver.ExchangeNumber(pass+1), rows); err != nil {
				return err
			}
		}
		total, err := r.reducer.Wait(ctx, uint64(pass))
		if err != nil {
			return err
		}
		if total.Sums[0].Limbs[0] != uint64(r.of) {
			return fmt.Errorf("rank %d, pass %d: %d ranks were added, want %d", r.number, pass,
				total.Sums[0].Limbs[0], r.of)
		}
	}
	return nil
}

// end meets the other ranks for the last time.
func (r *rank) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return r.comm.Barrier(ctx, "end")
}

// close closes what the rank has opened. Errors do not matter any more.
func (r *rank) close() {
	if r.reducer != nil {
		_ = r.reducer.Close()
	}
	if r.links != nil {
		_ = r.links.Close()
	}
	if r.comm != nil {
		r.comm.Close()
	}
	if r.conn != nil {
		r.conn.Close()
	}
}
