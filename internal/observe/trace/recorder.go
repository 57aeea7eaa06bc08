// Package trace records what the ranks of a run do and when, and writes it as one file in the Trace Event Format, which
// Perfetto and chrome://tracing read.
//
// A Recorder takes the steps of one rank: those that solver.Watch measures, those of the links' meters, the work of a
// GPU, checkpoints and the phases of the outputs. It keeps the first and the last passes. After the run each rank sends
// its Part to rank 0, where a Writer puts them, one after the other, into the file.
package trace

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"jacobi/halo"
	"jacobi/solver"
)

// Options are the parameters of a Recorder, the same on all ranks.
type Options struct {
	Passes   int  // how many of the first and of the last passes, or cycles, are kept
	From, To int  // passes that begin with sweeps From <= s < To are recorded; To is 0 for all from From on
	Cycles   bool // multigrid: a cycle is what a pass is elsewhere, and a sweep, too
	Done     int  // sweeps, or cycles, that earlier runs have done
}

// Recorder records the steps of one rank. A nil Recorder records nothing.
type Recorder struct {
	o     Options
	clock clock
	times Device // nil if no device times its work

	// Of the goroutine that sweeps.
	open   bool  // a pass has begun and not ended
	active bool  // the pass is to be recorded
	begun  int64 // when the pass began
	done   int   // sweeps before the pass
	units  uint32
	solver track
	phases []record

	current atomic.Int64 // the unit to which transfers belong, -1 for none
	mu      sync.Mutex   // goroutines of an exchange and of the saver use the others
	others  [tracks]track
}

// The tracks of a rank, in the order in which viewers show them: each link is beside the neighbour's.
const (
	trackTop    = iota // the link to the rank above
	trackSolver        // the goroutine that sweeps
	trackBottom
	trackSaver  // the goroutine that writes checkpoints
	trackDevice // the first queue of the device
	tracks      = trackDevice + solver.WorkQueues
)

// passMargin is the time in nanoseconds by which a pass outlasts its last step. A viewer that reads durations as
// floating-point numbers may lose a nanosecond of the pass, and would then take the step for one that overlaps it.
const passMargin = 5

// record is one step. Its times are in nanoseconds of the node's clock.
type record struct {
	Start, Took int64
	Number      uint64
	First       int64
	Unit        uint32 // the pass, counted among those that are to be recorded
	Sweeps      uint32 // or rows that a device copies
	Level       uint8
	Kind        kind
}

// New returns a Recorder whose first pass has not begun.
func New(o Options) *Recorder {
	r := &Recorder{o: o, clock: newClock(), done: o.Done, solver: newTrack(o.Passes)}
	for i := range r.others {
		r.others[i] = newTrack(o.Passes)
	}
	r.active = r.wanted()
	r.current.Store(-1)
	return r
}

// OnStep returns the function that takes the steps of the solver, or nil.
func (r *Recorder) OnStep() solver.OnStep {
	if r == nil {
		return nil
	}
	return r.step
}

// OnTransfer returns the function that takes the transfers of links, or nil.
func (r *Recorder) OnTransfer() func(solver.Side, halo.Transfer) {
	if r == nil {
		return nil
	}
	return r.transfer
}

// OnSaved returns the function that takes the time for which a rank wrote a checkpoint, or nil.
func (r *Recorder) OnSaved() func(sweeps int, start time.Time, took time.Duration) {
	if r == nil {
		return nil
	}
	return r.saved
}

// step takes a step of the solver.
func (r *Recorder) step(s solver.Step, start time.Time, took time.Duration) {
	at := r.clock.at(start)
	if !r.open && r.begins(s.Kind) {
		r.begin(at)
	}
	if r.active {
		r.solver.add(record{Start: at, Took: int64(took), Number: s.Number, First: int64(s.First), Unit: r.unit(),
			Sweeps: uint32(s.Sweeps), Level: uint8(s.Level), Kind: kind(s.Kind)})
	}
	switch {
	case s.Kind == solver.StepCycle:
		r.open, r.done = false, int(s.Number)+1
		r.next()
	case s.Kind == solver.StepInterior:
		r.open, r.done = false, s.First+s.Sweeps
		if r.active {
			r.solver.add(record{Start: r.begun, Took: at + int64(took) - r.begun + passMargin, Number: s.Number,
				First: int64(s.First), Unit: r.unit(), Sweeps: uint32(s.Sweeps), Kind: kindPass})
		}
		r.next()
	}
}

// begins reports whether a pass begins with a step of this kind. A cycle begins with any.
func (r *Recorder) begins(k solver.StepKind) bool {
	return r.o.Cycles || k == solver.StepWait || k == solver.StepEdges || k == solver.StepInterior
}

// begin begins a pass.
func (r *Recorder) begin(at int64) {
	r.open, r.begun = true, at
	if r.active = r.wanted(); !r.active {
		r.current.Store(-1)
		return
	}
	r.current.Store(int64(r.units))
	r.units++
}

// wanted reports whether the next pass is to be recorded.
func (r *Recorder) wanted() bool { return r.done >= r.o.From && (r.o.To == 0 || r.done < r.o.To) }

// unit returns the pass to which steps of the solver belong. Those before the first pass belong to it.
func (r *Recorder) unit() uint32 { return max(1, r.units) - 1 }

// transfer takes a transfer of a link.
func (r *Recorder) transfer(side solver.Side, t halo.Transfer) {
	unit := r.current.Load()
	if unit < 0 {
		return
	}
	at := trackTop
	if side == solver.Bottom {
		at = trackBottom
	}
	r.add(at, record{Start: r.clock.at(t.Start), Took: int64(t.Took), Number: uint64(t.Exchange), Unit: uint32(unit),
		Kind: transferKinds[t.Call]})
}

var transferKinds = [...]kind{halo.CallRoom: kindRoom, halo.CallSend: kindSend, halo.CallRecv: kindReceive}

// saved takes a checkpoint.
func (r *Recorder) saved(sweeps int, start time.Time, took time.Duration) {
	if unit := r.current.Load(); unit >= 0 {
		r.add(trackSaver, record{Start: r.clock.at(start), Took: int64(took), First: int64(sweeps),
			Unit: uint32(unit), Kind: kindCheckpoint})
	}
}

func (r *Recorder) add(to int, rec record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.others[to].add(rec)
}

// Phase records one of the Phases after the sweeps, which began at start and ends now. There are few; none is dropped.
func (r *Recorder) Phase(k kind, start time.Time) {
	if r != nil {
		r.phases = append(r.phases, record{Start: r.clock.at(start), Took: int64(time.Since(start)), Kind: k})
	}
}

// Now returns the time by the node's clock, in nanoseconds. All ranks of a node have the same.
func (r *Recorder) Now() int64 { return r.clock.at(time.Now()) }

// Part returns what was recorded. The run is over.
func (r *Recorder) Part(ctx context.Context) (Part, error) {
	p := Part{partHead: partHead{Passes: int64(r.units), Dropped: int64(r.solver.dropped())}}
	if r.times != nil {
		bound, err := r.times.End(ctx)
		if err != nil {
			return p, err
		}
		p.DeviceError = int64(bound)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range p.tracks {
		p.tracks[i] = r.others[i].records()
	}
	p.tracks[trackSolver] = append(r.solver.records(), r.phases...)
	return p, nil
}
