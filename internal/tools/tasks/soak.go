package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"time"

	"jacobi/internal/compute/device"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/rank"
	"jacobi/internal/tools/soak"
	"jacobi/solver"
)

// soaking is a rank that solves its problem again and again for launcher soak.
type soaking struct {
	*rank.Member
	*rank.Wired
	order     soak.Order
	fields    []*field  // a round is one step of each, in this order
	reference rowHashes // of the whole mesh
	device    soak.Device
	readings  device.Inventory // nil without readings
	started   time.Time        // of the first round
	total     soak.Total       // on rank 0
}

// soakVerdict is what rank 0 decides after a step.
type soakVerdict struct{ End, Stopped bool }

// Soak solves the problem in rounds and compares every result with the reference.
func Soak(order soak.Order) rank.Task {
	return func(ctx context.Context, m *rank.Member) (result solver.Result, err error) {
		s, err := prepareSoak(ctx, m, order)
		if err != nil {
			return result, err
		}
		if err := m.KeepOn(); err != nil {
			return result, err
		}
		verdict, err := s.rounds(ctx)
		if err != nil {
			return result, rank.OnGPU(s.GPU, err)
		}
		if verdict.Stopped {
			result.Reason = solver.Interrupted
		}
		if m.Comm.Self().Rank == 0 {
			report, err := json.Marshal(soak.Event{Event: "end", End: &s.total})
			if err != nil {
				return result, err
			}
			e := roster.Event{Kind: roster.Finished, Report: report,
				Verdict: string(m.Config.Solver.Verdict(result.Reason))}
			if err := m.Comm.Publish(e); err != nil {
				return result, err
			}
		}
		return result, m.End(ctx, result)
	}
}

// prepareSoak opens the fields. With several ranks that is the whole mesh for each of them, and the stripes of all.
func prepareSoak(ctx context.Context, m *rank.Member, order soak.Order) (*soaking, error) {
	w, err := m.Wire(ctx)
	if err != nil {
		return nil, err
	}
	s := &soaking{Member: m, Wired: w, order: order}
	ring, err := newField(soak.Ring, w.Layout, w.Backend, w.Exchange)
	if err != nil {
		return nil, err
	}
	s.fields = []*field{ring}
	if m.Comm.Self().Size == 1 {
		ring.kind = soak.Alone
	} else {
		alone, err := s.openAlone(ctx, s.GPU != nil, w.CPU)
		if err != nil {
			return nil, fmt.Errorf("the whole mesh: %w", err)
		}
		m.OnClose(alone.close)
		s.fields = []*field{alone, ring}
	}
	s.openHealth()
	return s, nil
}

// openHealth describes this rank's device and opens what reads it.
func (s *soaking) openHealth() {
	self := s.Comm.Self()
	s.device = soak.Device{Rank: self.Rank, Host: self.Host, Device: s.Device}
	if s.GPU == nil {
		s.device.Unread = "a CPU sweeps"
		return
	}
	s.device.UUID, s.device.PCIBusID = s.GPU.UUID, s.GPU.PCIBusID
	readings, err := device.OpenHealth(s.GPU.UUID)
	if err != nil {
		s.device.Unread = err.Error()
		return
	}
	s.OnClose(readings.Close)
	s.readings = readings
}

// rounds computes the reference and does rounds until rank 0 decides that they end.
func (s *soaking) rounds(ctx context.Context) (soakVerdict, error) {
	stopped, err := s.makeReference(ctx)
	if err != nil || stopped {
		return soakVerdict{End: true, Stopped: stopped}, err
	}
	s.started = time.Now()
	for round := 1; ; round++ {
		for _, f := range s.fields {
			result, err := s.step(ctx, f, round)
			if err != nil {
				return soakVerdict{}, fmt.Errorf("round %d, %s: %w", round, f.kind, err)
			}
			verdict, err := s.conclude(ctx, f, round, result)
			if err != nil || verdict.End {
				return verdict, err
			}
		}
	}
}

// step solves the problem once and compares the rows. While a rank sweeps alone, a request to stop ends the step.
func (s *soaking) step(ctx context.Context, f *field, round int) (soak.Rank, error) {
	result := soak.Rank{Device: s.device}
	stop := s.StopRequested()
	watch := newWatch(s, &result, soak.Working{Round: round, Kind: f.kind, Of: s.Config.Solver.MaxIterations})
	var initial solver.RowSource = s.Problem
	flip := s.order.Flip
	if flip != nil && f.kind == soak.Alone && flip.Round == round && flip.Rank == s.Comm.Self().Rank {
		initial = flipped{s.Problem, flip.Row}
	}
	begin := time.Now()
	complete, err := f.sweep(ctx, initial, s.Config.Solver.MaxIterations, func(sweeps int) bool {
		watch.see(sweeps)
		return f.kind == soak.Alone && stop()
	})
	result.Seconds, result.Stop = time.Since(begin).Seconds(), stop()
	if err != nil || !complete {
		return result, err
	}
	hashes, err := hashRows(ctx, f.backend, f.layout, max(1, min(int(s.Cores), runtime.GOMAXPROCS(0))))
	if err != nil {
		return result, err
	}
	result.Rows, result.SHA256 = f.layout.Stripe.Rows(), hashes.sum()
	result.Bits = int64(result.Rows) * int64(f.layout.Mesh.RowBytes()) * 8
	result.Differ = hashes.differ(s.reference)
	return result, nil
}

// conclude gathers the results of a step. Rank 0 tells the launcher, and all ranks whether the soak ends.
func (s *soaking) conclude(ctx context.Context, f *field, round int, result soak.Rank) (soakVerdict, error) {
	// heartbeats bound the wait
	return roster.DecideOn(ctx, s.Comm, "soak step", result, func(ranks []soak.Rank) (v soakVerdict, err error) {
		step := soak.Step{Round: round, Kind: f.kind, Sweeps: s.Config.Solver.MaxIterations,
			Elapsed: time.Since(s.started).Seconds(), Ranks: ranks}
		v.Stopped = slices.ContainsFunc(ranks, func(r soak.Rank) bool { return r.Stop })
		found := s.total.Add(step, len(s.fields) > 1)
		s.tell(soak.Event{Event: "step", Step: &step})
		over := s.total.Rounds > 0 && time.Since(s.started) >= s.order.For
		v.End = v.Stopped || over || s.order.StopOnError && len(found) > 0
		return v, nil
	})
}

// tell publishes e. A failure to tell of a step does not fail the soak; the total at its end counts.
func (s *soaking) tell(e soak.Event) {
	if report, err := json.Marshal(e); err == nil {
		_ = s.Comm.Publish(roster.Event{Kind: roster.Soaked, Report: report})
	}
}

// Times between readings of a GPU, and between the words of rank 0 in a long step.
const (
	healthInterval  = time.Second
	workingInterval = 5 * time.Second
)

// watch reads the health of a GPU while it sweeps and, on rank 0, tells how far a long step is.
type watch struct {
	s          *soaking
	result     *soak.Rank // gets the readings; nil for none
	working    soak.Working
	read, told time.Time // last
}

func newWatch(s *soaking, result *soak.Rank, working soak.Working) *watch {
	return &watch{s: s, result: result, working: working, told: time.Now()}
}

// see is called before each pass. The first reading comes before the second pass, when the device is at work.
func (w *watch) see(sweeps int) {
	now := time.Now()
	if sweeps > 0 && w.result != nil && w.s.readings != nil && now.Sub(w.read) >= healthInterval {
		w.read = now
		if r, err := w.s.readings.Health(w.s.device.UUID); err == nil { // a GPU that is lost fails soon itself
			w.result.Health = w.result.Health.With(r)
		}
	}
	if w.s.Comm.Self().Rank == 0 && now.Sub(w.told) >= workingInterval {
		w.told = now
		w.working.Sweeps = sweeps
		w.s.tell(soak.Event{Event: "working", Working: &w.working})
	}
}
