package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Part is what one rank has recorded.
type Part struct {
	Passes  int   // or cycles, to be recorded
	Dropped int   // of these, between the first and the last ones
	Clock   Clock // of the node; only in the part of the rank that has compared its clock
	// DeviceError bounds the error of the start times of a GPU's work against those of the host, in nanoseconds.
	DeviceError int64

	tracks [tracks][]record
}

// partHeader precedes the records of a Part. All numbers are little-endian.
type partHeader struct {
	Passes, Dropped uint64
	Clock           Clock
	DeviceError     int64
	Records         [tracks]uint32
}

// Encode returns p for another rank.
func (p Part) Encode() ([]byte, error) {
	h := partHeader{Passes: uint64(p.Passes), Dropped: uint64(p.Dropped), Clock: p.Clock,
		DeviceError: p.DeviceError}
	for i, t := range p.tracks {
		h.Records[i] = uint32(len(t))
	}
	b, err := binary.Append(nil, binary.LittleEndian, h)
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
func Decode(b []byte) (Part, error) {
	var h partHeader
	r := bytes.NewReader(b)
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return Part{}, fmt.Errorf("header: %w", err)
	}
	p := Part{Passes: int(h.Passes), Dropped: int(h.Dropped), Clock: h.Clock, DeviceError: h.DeviceError}
	size := binary.Size(record{})
	for i, n := range h.Records {
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
