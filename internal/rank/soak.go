package rank

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"jacobi/internal/device"
	"jacobi/internal/roster"
	"jacobi/internal/soak"
	"jacobi/solver"
)

// soaking is a rank that solves its problem again and again for launcher soak.
type soaking struct {
	*opened
	fields    []*soakField // a round is one step of each, in this order
	reference rowHashes    // of the whole mesh
	device    soak.Device
	readings  device.HealthReader // nil without readings
	started   time.Time           // of the first round
	total     soak.Total          // on rank 0
}

// soakVerdict is what rank 0 decides after a step.
type soakVerdict struct{ End, Stopped bool }

// soak solves the problem in rounds and compares every result with the reference. All ranks call it.
func (j *joined) soak(ctx context.Context, open *closers) (written, error) {
	s, err := j.prepareSoak(ctx, open)
	if err != nil {
		return written{}, err
	}
	if !s.keepOn() {
		return written{}, context.Cause(s.Stop)
	}
	verdict, err := s.rounds(ctx)
	if err != nil {
		return written{}, s.onGPU(err)
	}
	if j.id.Rank == 0 {
		report, err := json.Marshal(soak.Event{Event: "end", End: &s.total})
		if err != nil {
			return written{}, err
		}
		if err := j.team.Publish(roster.Event{Kind: roster.Finished, Report: report}); err != nil {
			return written{}, err
		}
	}
	var w written
	if verdict.Stopped {
		w.result.Reason = solver.Interrupted
	}
	return w, j.team.Barrier(ctx, "end")
}

// prepareSoak opens the fields. With several ranks that is the whole mesh for each of them, and the stripes of all.
func (j *joined) prepareSoak(ctx context.Context, open *closers) (*soaking, error) {
	w, err := j.wire(ctx, open)
	if err != nil {
		return nil, err
	}
	o := w.opened
	ring, err := w.soakField(soak.Ring)
	if err != nil {
		return nil, err
	}
	s := &soaking{opened: o, fields: []*soakField{ring}}
	if j.id.Size == 1 {
		ring.kind = soak.Alone
	} else {
		alone, err := o.openAlone(ctx, open)
		if err != nil {
			return nil, err
		}
		s.fields = []*soakField{alone, ring}
	}
	s.device, s.readings = o.soakDevice(open)
	return s, nil
}

// soakDevice describes this rank's device and opens what reads it.
func (o *opened) soakDevice(open *closers) (soak.Device, device.HealthReader) {
	d := soak.Device{Rank: o.id.Rank, Host: o.team.Self().Host, Device: o.describe}
	if o.chosen == nil {
		d.Unread = "a CPU sweeps"
		return d, nil
	}
	d.UUID, d.PCIBusID = o.chosen.UUID, o.chosen.PCIBusID
	nvml, err := device.OpenNVML()
	if err != nil {
		d.Unread = err.Error()
		return d, nil
	}
	open.add(nvml.Close)
	reader, ok := nvml.(device.HealthReader)
	if !ok {
		d.Unread = "NVML reads no health"
		return d, nil
	}
	if _, err := reader.Health(d.UUID); err != nil { // such as a slice of a GPU, which NVML does not know
		d.Unread = err.Error()
		return d, nil
	}
	return d, reader
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
func (s *soaking) step(ctx context.Context, f *soakField, round int) (soak.Rank, error) {
	result := soak.Rank{Device: s.device}
	stop := s.stopRequested()
	watch := newSoakWatch(s, &result, soak.Working{Round: round, Kind: f.kind, Of: s.Config.Solver.MaxIterations})
	var initial solver.RowSource = s.problem
	if flip := s.Soak.Flip; flip != nil && f.kind == soak.Alone && flip.Round == round && flip.Rank == s.id.Rank {
		initial = flipped{s.problem, flip.Row}
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
	hashes, err := hashRows(ctx, f.backend, f.layout, s.hashers())
	if err != nil {
		return result, err
	}
	result.Rows, result.SHA256 = f.layout.Stripe.Rows(), hashes.sum()
	result.Bits = int64(result.Rows) * int64(f.layout.Mesh.RowBytes()) * 8
	result.Differ = hashes.differ(s.reference)
	return result, nil
}

// conclude gathers the results of a step. Rank 0 tells the launcher, and all ranks whether the soak ends.
func (s *soaking) conclude(ctx context.Context, f *soakField, round int, result soak.Rank) (v soakVerdict, err error) {
	part, err := json.Marshal(result)
	if err != nil {
		return v, err
	}
	parts, err := s.team.Gather(ctx, "soak step", part) // signs of life bound the wait
	if err != nil {
		return v, err
	}
	var answer []byte
	if s.id.Rank == 0 {
		step := soak.Step{Round: round, Kind: f.kind, Sweeps: s.Config.Solver.MaxIterations,
			Elapsed: time.Since(s.started).Seconds(), Ranks: make([]soak.Rank, len(parts))}
		for i, p := range parts {
			if err := json.Unmarshal(p, &step.Ranks[i]); err != nil {
				return v, fmt.Errorf("result of rank %d: %w", i, err)
			}
			v.Stopped = v.Stopped || step.Ranks[i].Stop
		}
		found := s.total.Add(step, len(s.fields) > 1)
		s.tell(soak.Event{Event: "step", Step: &step})
		over := s.total.Rounds > 0 && time.Since(s.started) >= s.Soak.For
		v.End = v.Stopped || over || s.Soak.StopOnError && len(found) > 0
		if answer, err = json.Marshal(v); err != nil {
			return v, err
		}
	}
	if answer, err = s.team.Broadcast(ctx, "soak verdict", answer); err != nil {
		return v, err
	}
	return v, json.Unmarshal(answer, &v)
}

// tell publishes e. A failure to tell of a step does not fail the soak; the total at its end counts.
func (j *joined) tell(e soak.Event) {
	if report, err := json.Marshal(e); err == nil {
		_ = j.team.Publish(roster.Event{Kind: roster.Soaked, Report: report})
	}
}
