package trace

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/solver"
)

// Part is what one rank has recorded.
type Part struct {
	partHead
	tracks [tracks][]record
}

// partHead precedes, encoded, the numbers of records of the tracks, u32 each, and the records. All numbers are
// little-endian.
type partHead struct {
	Passes  int64 // or cycles, to be recorded
	Dropped int64 // of these, between the first and the last ones
	Clock   Clock // of the node; only in the part of the rank that has compared its clock
	// DeviceError bounds the error of the start times of a GPU's work against those of the host, in nanoseconds.
	DeviceError int64
}

// Encode returns p for another rank.
func (p Part) Encode() ([]byte, error) {
	var counts [tracks]uint32
	for i, t := range p.tracks {
		counts[i] = uint32(len(t))
	}
	b, err := binary.Append(nil, binary.LittleEndian, p.partHead)
	if err == nil {
		b, err = binary.Append(b, binary.LittleEndian, counts)
	}
	for _, t := range p.tracks {
		if err == nil {
			b, err = binary.Append(b, binary.LittleEndian, t)
		}
	}
	return b, err
}

// maxTime bounds the times of records, such that sums of them do not overflow.
const maxTime = 1 << 60

// Decode returns the Part that Encode encoded, or an error if b is none.
func Decode(b []byte) (p Part, err error) {
	var counts [tracks]uint32
	r := bytes.NewReader(b)
	if err := binary.Read(r, binary.LittleEndian, &p.partHead); err != nil {
		return Part{}, fmt.Errorf("header: %w", err)
	}
	if err := binary.Read(r, binary.LittleEndian, &counts); err != nil {
		return Part{}, fmt.Errorf("header: %w", err)
	}
	size := binary.Size(record{})
	for i, n := range counts {
		if int(n) > r.Len()/size {
			return Part{}, fmt.Errorf("%d records in %d bytes", n, r.Len())
		}
		p.tracks[i] = make([]record, n)
		if err := binary.Read(r, binary.LittleEndian, p.tracks[i]); err != nil {
			return Part{}, err
		}
	}
	if r.Len() > 0 {
		return Part{}, fmt.Errorf("%d bytes too many", r.Len())
	}
	return p, p.check()
}

// check refuses times that no rank has.
func (p Part) check() error {
	for _, at := range []int64{p.Clock.Before.At, p.Clock.Before.Ahead, p.Clock.Before.Error, p.Clock.After.At,
		p.Clock.After.Ahead, p.Clock.After.Error, p.DeviceError} {
		if at < -maxTime || at > maxTime {
			return errors.New("a clock that is out of range")
		}
	}
	for _, t := range p.tracks {
		for _, r := range t {
			if !r.Kind.valid() || r.Start < -maxTime || r.Start > maxTime || r.Took < 0 || r.Took > maxTime {
				return fmt.Errorf("record of kind %d at %d for %d ns", r.Kind, r.Start, r.Took)
			}
		}
	}
	return nil
}

// clock converts times of this process to those of CLOCK_MONOTONIC, which all processes of a node share.
type clock struct {
	base time.Time
	mono int64 // at base, in nanoseconds
}

// newClock compares the two clocks. It takes the closest of several comparisons, since the process may be interrupted.
func newClock() (c clock) {
	const attempts = 16
	closest := int64(-1)
	for range attempts {
		before := monotonic()
		base := time.Now()
		after := monotonic()
		if d := after - before; closest < 0 || d < closest {
			closest, c = d, clock{base, before + d/2}
		}
	}
	return c
}

// monotonic reads CLOCK_MONOTONIC. It cannot fail: Linux always has that clock.
func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// at returns t, which time.Now has returned, in nanoseconds.
func (c clock) at(t time.Time) int64 { return c.mono + int64(t.Sub(c.base)) }

// Reading is one comparison of a node's clock with that of rank 0, in nanoseconds.
type Reading struct {
	At    int64 `json:"-"`        // by the node's clock
	Ahead int64 `json:"ahead_ns"` // the node's clock less that of rank 0
	Error int64 `json:"error_ns"` // bound on the error of Ahead
}

// Clock relates the clock of a node to that of rank 0, by readings before and after the sweeps. The zero Clock is that
// of ranks under the same kernel as rank 0.
type Clock struct {
	Before Reading `json:"before"`
	After  Reading `json:"after"`
}

// Drifts reports whether the readings differ by more than their errors.
func (c Clock) Drifts() bool {
	d := c.After.Ahead - c.Before.Ahead
	return max(d, -d) > c.Before.Error+c.After.Error && c.After.At > c.Before.At
}

// there returns a time by the node's clock as one by that of rank 0. It keeps the order of times. If the clocks do not
// drift, it keeps durations, too.
func (c Clock) there(at int64) int64 {
	switch {
	case c.Drifts():
		share := float64(at-c.Before.At) / float64(c.After.At-c.Before.At)
		return at - c.Before.Ahead - int64(share*float64(c.After.Ahead-c.Before.Ahead))
	case c.After.Error < c.Before.Error:
		return at - c.After.Ahead
	}
	return at - c.Before.Ahead
}

// maxRecords bounds the records at either end of a track, and so the memory of a rank and the size of its part.
const maxRecords = 1 << 17

// track keeps the records of the first and of the last units. It takes no memory for units before it needs it, and none
// once it has dropped some.
type track struct {
	keep  uint32
	head  []record
	tail  []record // a ring; its length is a power of two or 0
	first int      // of the ring
	count int      // in the ring
}

func newTrack(keep int) track { return track{keep: uint32(keep)} }

// add adds a record. Units never fall.
func (t *track) add(r record) {
	if t.count == 0 && r.Unit < t.keep && len(t.head) < maxRecords {
		t.head = append(t.head, r)
		return
	}
	for t.count > 0 && t.tail[t.first].Unit+t.keep <= r.Unit || t.count == maxRecords {
		t.first = t.at(1)
		t.count--
	}
	if t.count == len(t.tail) {
		t.grow()
	}
	t.tail[t.at(t.count)] = r
	t.count++
}

// at returns the place in the ring of the record i after the first one.
func (t *track) at(i int) int { return (t.first + i) & (len(t.tail) - 1) }

// grow doubles the ring.
func (t *track) grow() {
	n := len(t.tail)
	ring := make([]record, min(max(64, 2*n), maxRecords))
	copy(ring, t.tail[t.first:])
	copy(ring[n-t.first:], t.tail[:t.first])
	t.tail, t.first = ring, 0
}

// records returns all records, in the order in which they were added.
func (t *track) records() []record {
	all := append(make([]record, 0, len(t.head)+t.count), t.head...)
	for i := range t.count {
		all = append(all, t.tail[t.at(i)])
	}
	return all
}

// dropped returns the number of units between the first and the last ones that are not there as a whole.
func (t *track) dropped() int {
	if t.count == 0 {
		return 0
	}
	from := uint32(0)
	if n := len(t.head); n > 0 {
		from = t.head[n-1].Unit + 1
	}
	return int(max(t.tail[t.first].Unit, from) - from)
}

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
