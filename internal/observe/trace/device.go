package trace

import (
	"context"
	"time"

	"jacobi/solver"
)

// Device times its work by events, and hands the times to OnWork of a Recorder when it likes to, at the latest in End.
// All calls come from the goroutine that sweeps.
type Device interface {
	// Begin says to which pass, counted among those that are to be recorded, the work belongs that the device is given
	// from now on; -1 stands for none.
	Begin(unit int)
	// End hands over the rest and returns a bound on the error of the start times.
	End(ctx context.Context) (time.Duration, error)
}

// Watch makes d time its work from Start on.
func (r *Recorder) Watch(d Device) { r.times = d }

// Start begins the recording of the work of the device. Its clock is compared with that of the node.
func (r *Recorder) Start() { r.next() }

// next tells the device to which pass the work belongs that it is given next.
func (r *Recorder) next() {
	switch {
	case r.times == nil:
	case r.wanted():
		r.times.Begin(int(r.units))
	default:
		r.times.Begin(-1)
	}
}

// OnWork takes work of the device. Work after the last pass, such as copies for the outputs, belongs to that pass.
func (r *Recorder) OnWork(w solver.Work, unit int, start time.Time, took time.Duration) {
	r.add(trackDevice+w.Queue, record{Start: r.clock.at(start), Took: int64(took), Number: w.Number,
		First: int64(w.First), Unit: min(uint32(unit), r.unit()), Sweeps: uint32(w.Sweeps + w.Rows),
		Level: uint8(w.Level), Kind: kindWork + kind(w.Kind)})
}
