// Package tasks is what ranks do in place of solving: they measure their machines for launcher probe (probe.go), try
// the start of a run for launcher doctor (examine.go), or solve again and again and compare the results for launcher
// soak (soak.go; its fields and their hashes field.go).
// Command jacobi-rank hands a task to package rank, which has the ranks meet first.
package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"jacobi/cuda/driver"
	"jacobi/internal/base/awake"
	"jacobi/internal/compute/device"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/rank"
	"jacobi/internal/tools/examine"
	"jacobi/solver"
)

// Examine takes all steps of a run before the sweeps for launcher doctor, reports the findings to it, and leaves no
// files. node is what was found before the ranks met.
func Examine(node examine.Node) rank.Task {
	return func(ctx context.Context, m *rank.Member) (solver.Result, error) {
		return solver.Result{}, tellFindings(ctx, m, node)
	}
}

func tellFindings(ctx context.Context, m *rank.Member, node examine.Node) error {
	found := &examine.Rank{Rank: m.Comm.Self().Rank, Node: node}
	if err := tryStart(ctx, m, found); err != nil {
		cause := m.Blame(err)
		found.Fault, found.Consequence = cause.Error(), follows(cause)
		if report, told := json.Marshal(found); told == nil {
			_ = m.Comm.Publish(roster.Event{Kind: roster.Examined, Report: report}) // the abort reports the fault, too
		}
		return err
	}
	ctx, cancel := awake.WithTimeout(ctx, m.Config.Halo.Timeout)
	defer cancel()
	all, err := roster.GatherOn(ctx, m.Comm, "examined", found)
	if err != nil {
		return err
	}
	if found.Rank == 0 {
		report, err := json.Marshal(all)
		if err != nil {
			return err
		}
		if err := m.Comm.Publish(roster.Event{Kind: roster.Finished, Report: report}); err != nil {
			return err
		}
	}
	return m.End(ctx, solver.Result{})
}

// follows reports whether a rank failed because another one had: it was told, or the launcher stopped it.
func follows(cause error) bool {
	_, stopped := errors.AsType[*rank.StopError](cause)
	return stopped || roster.IsConsequence(cause)
}

// tryStart takes the phases before the sweeps, and fills found.
func tryStart(ctx context.Context, m *rank.Member, found *examine.Rank) error {
	if err := askServer(ctx, m, &found.Node); err != nil {
		return err
	}
	c, first := m.Config.Checkpoint, found.Rank == 0
	if first {
		defer examine.Undo(c.Dir)()
	}
	report, undo, err := m.Try(ctx, func() error {
		if !first || !c.On() || c.Dir == "" {
			return nil
		}
		mesh := m.Problem.Mesh()
		place, err := examine.Place{Key: "checkpoint.dir", Dir: c.Dir,
			Needed: int64(c.Keep+1) * int64(mesh.Interior().Rows()) * int64(mesh.RowBytes())}.Measure()
		if err != nil {
			return fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err)
		}
		found.Checkpoints = place
		return nil
	})
	if err != nil {
		return err
	}
	defer undo()
	found.Report = &report
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("count the open files: %w", err)
	}
	found.Node.Files = len(files)
	if found.PeerAccess, err = peerAccess(m.GPUs, report.GPU); err != nil {
		return rank.OnGPU(report.GPU, fmt.Errorf("ask for peer access: %w", err))
	}
	return nil
}

// askServer measures the round trip to the NATS server and compares the clocks of the nodes.
func askServer(ctx context.Context, m *rank.Member, n *examine.Node) error {
	ctx, cancel := awake.WithTimeout(ctx, m.Config.Halo.Timeout)
	defer cancel()
	trip, err := m.Comm.RoundTrip(ctx)
	if err != nil {
		return err
	}
	n.NATSRoundTrip = trip.Seconds()
	wallClock := func() int64 { return time.Now().UnixNano() }
	switch self := m.Comm.Self(); {
	case self.Rank > 0 && self.LocalRank > 0:
		return nil
	case self.Rank > 0:
		ahead, bound, err := m.Comm.CompareClock(ctx, wallClock)
		n.Clock = &examine.Clock{Ahead: ahead.Seconds(), Error: bound.Seconds()}
		return err
	}
	for _, other := range m.Comm.Members()[1:] {
		if other.LocalRank > 0 {
			continue
		}
		if err := m.Comm.TellTime(ctx, other.Rank, wallClock); err != nil {
			return err
		}
	}
	return nil
}

// peerAccess returns, by UUID, whether a rank's GPU can access the memory of each other GPU, as the driver says.
func peerAccess(gpus *device.Node, chosen *output.GPUReport) (map[string]bool, error) {
	if chosen == nil {
		return nil, nil
	}
	devices := gpus.Devices
	own := slices.IndexFunc(devices, func(d driver.Device) bool { return d.Index == chosen.Index })
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
