package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"jacobi/cuda/driver"
	"jacobi/internal/awake"
	"jacobi/internal/checkpoint"
	"jacobi/internal/examine"
	"jacobi/internal/roster"
	"jacobi/solver"
)

// rounds is the number of measurements of a round trip; the shortest counts.
const rounds = 8

// examine takes all steps of a run before the sweeps, reports the findings to the launcher, and leaves no files.
func (r *rank) examine(ctx context.Context) (result solver.Result, err error) {
	found := &examine.Rank{Rank: r.id.Rank, Node: *r.node}
	if err := r.tryStart(ctx, found); err != nil {
		found.Fault, found.Consequence = r.blame(err).Error(), roster.IsConsequence(r.blame(err))
		if report, told := json.Marshal(found); told == nil {
			_ = r.team.Publish(roster.Event{Kind: roster.Examined, Report: report}) // the abort reports the fault, too
		}
		return result, err
	}
	report, err := json.Marshal(found)
	if err != nil {
		return result, err
	}
	ctx, cancel := awake.WithTimeout(ctx, r.cfg.Halo.Timeout)
	defer cancel()
	parts, err := r.team.Gather(ctx, "examined", report)
	if err != nil {
		return result, err
	}
	if r.id.Rank == 0 {
		all := slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
		if err := r.team.Publish(roster.Event{Kind: roster.Finished, Report: all}); err != nil {
			return result, err
		}
	}
	return result, r.team.Barrier(ctx, "end")
}

// tryStart takes the steps of solveInTeam before the sweeps, and fills found.
func (r *rank) tryStart(ctx context.Context, found *examine.Rank) error {
	if err := r.measure(ctx, &found.Node); err != nil {
		return err
	}
	if r.id.Rank == 0 {
		defer examine.Undo(r.cfg.Checkpoint.Dir)()
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	if c := r.cfg.Checkpoint; r.id.Rank == 0 && c.On() && c.Dir != "" {
		mesh := r.layout.Mesh
		place, err := examine.Place{Key: "checkpoint.dir", Dir: c.Dir,
			Needed: int64(c.Keep+1) * int64(mesh.NY-2) * int64(mesh.RowBytes())}.Measure()
		if err != nil {
			return fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err)
		}
		found.Checkpoints = place
	}
	out, err := r.prepareOutputs(ctx)
	if err != nil {
		return err
	}
	defer out.abort()
	report := out.rankReport(solver.Result{})
	found.Report = &report
	if found.Node.Files, err = examine.OpenFiles(); err != nil {
		return fmt.Errorf("count the open files: %w", err)
	}
	if found.PeerAccess, err = r.peerAccess(); err != nil {
		return r.onGPU(fmt.Errorf("ask for peer access: %w", err))
	}
	return nil
}

// peerAccess returns, by UUID, whether this rank's GPU can access the memory of each other GPU, as the driver says.
func (r *rank) peerAccess() (map[string]bool, error) {
	if r.chosen == nil {
		return nil, nil
	}
	devices := r.gpus.Devices
	own := slices.IndexFunc(devices, func(d driver.Device) bool { return d.Index == r.chosen.Index })
	can := map[string]bool{}
	for i := range devices {
		if i == own {
			continue
		}
		yes, err := devices[own].CanAccessPeer(&devices[i])
		if err != nil {
			return nil, err
		}
		can[devices[i].UUID] = yes
	}
	return can, nil
}

// measure measures the round trip to the NATS server and compares the clocks of the nodes.
func (r *rank) measure(ctx context.Context, n *examine.Node) error {
	ctx, cancel := awake.WithTimeout(ctx, r.cfg.Halo.Timeout)
	defer cancel()
	best := time.Duration(-1)
	for range rounds {
		start := time.Now()
		if err := r.team.Conn().FlushWithContext(ctx); err != nil {
			return fmt.Errorf("round trip to the NATS server: %w", err)
		}
		if took := time.Since(start); best < 0 || took < best {
			best = took
		}
	}
	n.NATSRoundTrip = best.Seconds()
	if r.id.Rank > 0 {
		if r.id.LocalRank > 0 {
			return nil
		}
		c, err := r.compareClock(ctx)
		n.Clock = c
		return err
	}
	for _, m := range r.team.Members()[1:] {
		if m.LocalRank > 0 {
			continue
		}
		if err := r.tellTime(ctx, m.Rank); err != nil {
			return err
		}
	}
	return nil
}

// compareClock asks rank 0 for the time. The error of an answer is at most half its round trip.
func (r *rank) compareClock(ctx context.Context) (*examine.Clock, error) {
	var best *examine.Clock
	for range rounds {
		start := time.Now()
		if err := r.team.Send(ctx, 0, "time?", nil); err != nil {
			return nil, err
		}
		data, err := r.team.Recv(ctx, 0, "time")
		if err != nil {
			return nil, err
		}
		half := time.Since(start) / 2
		var there time.Time
		if err := there.UnmarshalBinary(data); err != nil {
			return nil, fmt.Errorf("time of rank 0: %w", err)
		}
		if c := (examine.Clock{Ahead: start.Add(half).Sub(there).Seconds(), Error: half.Seconds()}); best == nil ||
			c.Error < best.Error {
			best = &c
		}
	}
	return best, nil
}

// tellTime answers the questions of rank to.
func (r *rank) tellTime(ctx context.Context, to int) error {
	for range rounds {
		if _, err := r.team.Recv(ctx, to, "time?"); err != nil {
			return err
		}
		now, err := time.Now().MarshalBinary()
		if err != nil {
			return err
		}
		if err := r.team.Send(ctx, to, "time", now); err != nil {
			return err
		}
	}
	return nil
}

// keptStore is a Store that another run may be using. It keeps the incomplete checkpoints of that run.
type keptStore struct{ checkpoint.Store }

func (keptStore) RemoveUnsealed(context.Context) error { return nil }
