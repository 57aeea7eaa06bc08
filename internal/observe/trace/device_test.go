package trace

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"jacobi/solver"
)

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
