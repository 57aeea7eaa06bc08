package output

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// A thumbnail travels as min and max (float64) and records of [row or line (8 bytes), kind (1 byte), sums (float64
// each)], little-endian. The rest of it is the same on all ranks.
const (
	recordHeader = 8 + 1

	kindLine = 0 // the sums of a complete line
	kindRow  = 1 // the sums of one row of the mesh in an incomplete line
)

// encode encodes the rows of the thumbnail. A complete line takes 8 bytes per cell, and so does each row of an
// incomplete one.
func (t *Thumbnail) encode() (b []byte) {
	record := func(number int, kind byte, sums []float64) {
		b = append(binary.LittleEndian.AppendUint64(b, uint64(number)), kind)
		b = appendFloats(b, sums...)
	}
	b = appendFloats(b, t.min, t.max)
	for i, l := range t.lines {
		if l.sums != nil {
			record(i, kindLine, l.sums)
		}
		for _, iy := range slices.Sorted(maps.Keys(l.waiting)) {
			record(iy, kindRow, l.waiting[iy])
		}
	}
	return b
}

func appendFloats(b []byte, values ...float64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// merge adds the rows that another rank has encoded.
func (t *Thumbnail) merge(b []byte) error {
	record := recordHeader + 8*t.scale.x.cells(t.mesh.NX)
	if len(b) < 16 || (len(b)-16)%record != 0 {
		return errors.New("thumbnail: malformed bytes")
	}
	t.min, t.max = min(t.min, float64At(b, 0)), max(t.max, float64At(b, 8))
	for b = b[16:]; len(b) > 0; b = b[record:] {
		number, kind, sums := binary.LittleEndian.Uint64(b), b[8], make([]float64, t.scale.x.cells(t.mesh.NX))
		for c := range sums {
			sums[c] = float64At(b, recordHeader+8*c)
		}
		switch {
		case kind == kindRow && number < uint64(t.mesh.NY):
			if err := t.add(int(number), sums); err != nil {
				return err
			}
		case kind == kindLine && number < uint64(len(t.lines)):
			l := &t.lines[number]
			if l.sums != nil || l.waiting != nil {
				return fmt.Errorf("thumbnail: some of rows %v twice", t.lineRows(int(number)))
			}
			l.sums = sums
		default:
			return fmt.Errorf("thumbnail: record %d of kind %d", number, kind)
		}
	}
	return nil
}

func float64At(b []byte, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(b[i:]))
}

// GatherFunc hands the data of all ranks to rank 0, by rank, in messages of a name. Other ranks get nil.
type GatherFunc func(ctx context.Context, name string, data []byte) ([][]byte, error)

// MergeAll adds the pictures of all ranks; t is that of the given one. It returns the whole picture on rank 0, and nil
// elsewhere.
func (t *Thumbnail) MergeAll(ctx context.Context, gather GatherFunc, name string, rank int) (*Thumbnail, error) {
	var data []byte
	if rank > 0 { // rank 0 has its own
		data = t.encode()
	}
	parts, err := gather(ctx, name, data)
	if err != nil || parts == nil {
		return nil, err
	}
	for rank, part := range parts[1:] {
		if err := t.merge(part); err != nil {
			return nil, fmt.Errorf("%s of rank %d: %w", name, rank+1, err)
		}
	}
	return t, nil
}
