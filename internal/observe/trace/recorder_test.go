package trace

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"jacobi/halo"
	"jacobi/solver"
)

// drive gives r the steps of a run of passes of the given number of sweeps, from sweep 0 on, each step a microsecond
// after the one before it.
func drive(r *Recorder, passes, sweeps int) {
	at := r.clock.base
	step := func(s solver.Step) {
		r.step(s, at, time.Microsecond)
		at = at.Add(2 * time.Microsecond)
	}
	for p := range passes {
		of := func(k solver.StepKind) solver.Step {
			return solver.Step{Kind: k, Number: uint64(p), First: p * sweeps, Sweeps: sweeps}
		}
		if p > 0 {
			step(solver.Step{Kind: solver.StepWait, Number: uint64(p)})
			r.transfer(solver.Bottom, halo.Transfer{Exchange: solver.ExchangeNumber(p), Call: halo.CallRecv, Start: at})
		}
		step(of(solver.StepEdges))
		r.transfer(solver.Bottom, halo.Transfer{Exchange: solver.ExchangeNumber(p + 1), Call: halo.CallSend, Start: at})
		step(of(solver.StepInterior))
		step(of(solver.StepSums))
	}
}

func partOf(t *testing.T, r *Recorder) Part {
	t.Helper()
	p, err := r.Part(t.Context())
	must(t, err)
	return p
}

// numbersOf returns the numbers of the records of a kind.
func numbersOf(records []record, k kind) (numbers []uint64) {
	for _, r := range records {
		if r.Kind == k {
			numbers = append(numbers, r.Number)
		}
	}
	return numbers
}

// A recorder keeps the passes that begin in the window, and of these the first and the last ones, on all tracks.
func TestRecorderKeepsTheWindow(t *testing.T) {
	for name, c := range map[string]struct {
		o               Options
		want, sent      []uint64
		passes, dropped int64
		beginsWithWait  bool
	}{
		"all": {Options{Passes: 10}, []uint64{0, 1, 2, 3, 4, 5, 6, 7}, []uint64{1, 2, 3, 4, 5, 6, 7, 8},
			8, 0, false},
		"ends of all": {Options{Passes: 2}, []uint64{0, 1, 6, 7}, []uint64{1, 2, 7, 8}, 8, 4, false},
		"from":        {Options{Passes: 10, From: 9}, []uint64{3, 4, 5, 6, 7}, []uint64{4, 5, 6, 7, 8}, 5, 0, true},
		"to":          {Options{Passes: 10, To: 9}, []uint64{0, 1, 2}, []uint64{1, 2, 3}, 3, 0, false},
		"from, to":    {Options{Passes: 10, From: 6, To: 7}, []uint64{2}, []uint64{3}, 1, 0, true},
		"beyond":      {Options{Passes: 10, From: 24}, nil, nil, 0, 0, false},
	} {
		r := New(c.o)
		drive(r, 8, 3)
		p := partOf(t, r)
		if got := numbersOf(p.tracks[trackSolver], kindPass); !slices.Equal(got, c.want) || p.Passes != c.passes ||
			p.Dropped != c.dropped {
			t.Errorf("%s: passes %v, %d of which %d dropped; want %v", name, got, p.Passes, p.Dropped, c.want)
		}
		for _, k := range []solver.StepKind{solver.StepEdges, solver.StepInterior, solver.StepSums} {
			if got := numbersOf(p.tracks[trackSolver], kind(k)); !slices.Equal(got, c.want) {
				t.Errorf("%s: steps of kind %d of passes %v, want %v", name, k, got, c.want)
			}
		}
		if got := numbersOf(p.tracks[trackBottom], kindSend); !slices.Equal(got, c.sent) {
			t.Errorf("%s: exchanges %v, want %v", name, got, c.sent)
		}
		if len(c.want) > 0 && (p.tracks[trackSolver][0].Kind == kind(solver.StepWait)) != c.beginsWithWait {
			t.Errorf("%s: begins with kind %d", name, p.tracks[trackSolver][0].Kind)
		}
	}
}

// A pass begins with the wait for its halos and ends with its interior; what follows belongs to it, too.
func TestPassEnclosesItsSteps(t *testing.T) {
	r := New(Options{Passes: 1})
	drive(r, 2, 1)
	var pass, wait, interior, sums record
	for _, rec := range partOf(t, r).tracks[trackSolver] {
		if rec.Unit != 1 {
			continue
		}
		switch rec.Kind {
		case kindPass:
			pass = rec
		case kind(solver.StepWait):
			wait = rec
		case kind(solver.StepInterior):
			interior = rec
		case kind(solver.StepSums):
			sums = rec
		}
	}
	if pass.Start != wait.Start || pass.Took != 5000+passMargin ||
		pass.Start+pass.Took != interior.Start+interior.Took+passMargin || sums.Start != pass.Start+6000 {
		t.Errorf("pass %+v, wait %+v, interior %+v, sums %+v", pass, wait, interior, sums)
	}
}

// Cycles of multigrid stand for passes: the steps before the first one belong to it.
func TestRecorderCountsCycles(t *testing.T) {
	r := New(Options{Passes: 1, Cycles: true, Done: 4})
	at := r.clock.base
	for cycle := range 5 {
		if cycle == 0 {
			r.step(solver.Step{Kind: solver.StepNorm}, at, 1)
		}
		r.step(solver.Step{Kind: solver.StepDown, Level: 3}, at, 1)
		r.step(solver.Step{Kind: solver.StepCycle, Number: uint64(4 + cycle)}, at, 2)
	}
	p := partOf(t, r)
	records := p.tracks[trackSolver]
	if got := numbersOf(records, kind(solver.StepCycle)); !slices.Equal(got, []uint64{4, 8}) || p.Passes != 5 ||
		p.Dropped != 3 || len(records) != 5 || records[0].Kind != kind(solver.StepNorm) || records[1].Level != 3 {
		t.Errorf("cycles %v, %d of which %d dropped: %+v", got, p.Passes, p.Dropped, records)
	}
}

// Without a recorder there is nothing to call.
func TestNoRecorder(t *testing.T) {
	var r *Recorder
	r.Phase(PhaseRows, time.Now())
	if r.OnStep() != nil || r.OnTransfer() != nil || r.OnSaved() != nil {
		t.Error("a nil recorder wants to be called")
	}
}

// Steps are recorded without allocations once passes are dropped.
func TestRecorderAllocatesNothing(t *testing.T) {
	r := New(Options{Passes: 5})
	drive(r, 40, 1)
	if n := testing.AllocsPerRun(100, func() { drive(r, 1, 1) }); n != 0 {
		t.Errorf("%g allocations a pass", n)
	}
}

// told is a Device that hands over one piece of work of each pass in which it was given any, a pass late.
type told struct {
	units []int
	r     *Recorder
	late  []int
	fails error
}

func (d *told) Begin(unit int) {
	d.units = append(d.units, unit)
	d.give()
	if unit >= 0 {
		d.late = append(d.late, unit)
	}
}

func (d *told) give() {
	for _, unit := range d.late {
		w := solver.Work{Kind: solver.WorkStripe, Queue: 1, Number: uint64(unit), First: 3 * unit, Sweeps: 3}
		d.r.OnWork(w, unit, d.r.clock.base.Add(time.Duration(unit)), time.Nanosecond)
	}
	d.late = nil
}

func (d *told) End(context.Context) (time.Duration, error) {
	d.give()
	return 7, d.fails
}

// A device is told of each pass before it is given its work. Its work is kept for the passes that are kept, and what it
// does after the last one belongs to that.
func TestRecorderTellsTheDevice(t *testing.T) {
	for name, c := range map[string]struct {
		o     Options
		units []int
		kept  []uint64
	}{
		"all":     {Options{Passes: 10}, []int{0, 1, 2, 3, 4}, []uint64{0, 1, 2, 3, 4}},
		"ends":    {Options{Passes: 1}, []int{0, 1, 2, 3, 4}, []uint64{0, 3, 4}},
		"a part":  {Options{Passes: 10, From: 3, To: 9}, []int{-1, 0, 1, -1, -1}, []uint64{0, 1}},
		"nothing": {Options{Passes: 10, From: 20}, []int{-1, -1, -1, -1, -1}, nil},
	} {
		r := New(c.o)
		d := &told{r: r}
		r.Watch(d)
		r.Start()
		drive(r, 4, 3)
		p := partOf(t, r)
		if !slices.Equal(d.units, c.units) {
			t.Errorf("%s: told %d, want %d", name, d.units, c.units)
		}
		if got := numbersOf(p.tracks[trackDevice+1], kindWork+kind(solver.WorkStripe)); !slices.Equal(got, c.kept) ||
			p.DeviceError != 7 || len(p.tracks[trackDevice]) != 0 {
			t.Errorf("%s: kept %d, want %d; error %d", name, got, c.kept, p.DeviceError)
		}
	}
}

// A device that fails to time its work leaves no trace that lacks it.
func TestRecorderOfFailedDevice(t *testing.T) {
	r, failed := New(Options{Passes: 1}), errors.New("no events")
	r.Watch(&told{r: r, fails: failed})
	if _, err := r.Part(t.Context()); !errors.Is(err, failed) {
		t.Error(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
