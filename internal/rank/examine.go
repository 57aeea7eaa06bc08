package rank

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"jacobi/cuda/driver"
	"jacobi/internal/awake"
	"jacobi/internal/checkpoint"
	"jacobi/internal/examine"
	"jacobi/internal/roster"
	"jacobi/solver"
)

// examine takes all steps of a run before the sweeps, reports the findings to the launcher, and leaves no files.
func (j *joined) examine(ctx context.Context, open *closers) (written, error) {
	found := &examine.Rank{Rank: j.id.Rank, Node: *j.node}
	if err := j.tryStart(ctx, open, found); err != nil {
		found.Fault, found.Consequence = j.blame(err).Error(), roster.IsConsequence(j.blame(err))
		if report, told := json.Marshal(found); told == nil {
			_ = j.team.Publish(roster.Event{Kind: roster.Examined, Report: report}) // the abort reports the fault, too
		}
		return written{}, err
	}
	report, err := json.Marshal(found)
	if err != nil {
		return written{}, err
	}
	ctx, cancel := awake.WithTimeout(ctx, j.Config.Halo.Timeout)
	defer cancel()
	parts, err := j.team.Gather(ctx, "examined", report)
	if err != nil {
		return written{}, err
	}
	if j.id.Rank == 0 {
		all := slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
		if err := j.team.Publish(roster.Event{Kind: roster.Finished, Report: all}); err != nil {
			return written{}, err
		}
	}
	return written{}, j.team.Barrier(ctx, "end")
}

// tryStart takes the phases before the sweeps, and fills found.
func (j *joined) tryStart(ctx context.Context, open *closers, found *examine.Rank) error {
	if err := j.measure(ctx, &found.Node); err != nil {
		return err
	}
	if j.id.Rank == 0 {
		defer examine.Undo(j.Config.Checkpoint.Dir)()
	}
	l, err := j.setUp(ctx, open)
	if err != nil {
		return err
	}
	if c := j.Config.Checkpoint; j.id.Rank == 0 && c.On() && c.Dir != "" {
		mesh := l.layout.Mesh
		place, err := examine.Place{Key: "checkpoint.dir", Dir: c.Dir,
			Needed: int64(c.Keep+1) * int64(mesh.Interior().Rows()) * int64(mesh.RowBytes())}.Measure()
		if err != nil {
			return fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err)
		}
		found.Checkpoints = place
	}
	r, err := l.prepareOutputs(ctx, open)
	if err != nil {
		return err
	}
	defer r.abort()
	report := r.rankReport(solver.Result{}, nil)
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
func (o *opened) peerAccess() (map[string]bool, error) {
	if o.chosen == nil {
		return nil, nil
	}
	devices := o.gpus.Devices
	own := slices.IndexFunc(devices, func(d driver.Device) bool { return d.Index == o.chosen.Index })
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

// keptStore is a Store that another run may be using. It keeps the incomplete checkpoints of that run.
type keptStore struct{ checkpoint.Store }

// RemoveUnsealed implements checkpoint.Store. It removes nothing.
func (keptStore) RemoveUnsealed(context.Context) error { return nil }
