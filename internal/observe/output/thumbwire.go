package output

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"jacobi/solver"
)

// A marshalled thumbnail, little-endian: NX, NY (8 bytes each), DType, the left, right, top and bottom wall, 1 for a
// frame of an animation or 0 (1 byte each), min, max, hx, hy (float64), then records of [row or line (8 bytes), kind (1
// byte), sums (float64 each)] until the end.
const (
	thumbHeader  = 8 + 8 + 1 + 4 + 1 + 4*8
	recordHeader = 8 + 1

	kindLine = 0 // the sums of a complete line
	kindRow  = 1 // the sums of one row of the mesh in an incomplete line
)

// MarshalBinary encodes the thumbnail for another rank. A complete line takes 8 bytes per cell, and so does each row of
// an incomplete one.
func (t *Thumbnail) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, thumbHeader+len(t.lines))
	b = binary.LittleEndian.AppendUint64(b, uint64(t.mesh.NX))
	b = binary.LittleEndian.AppendUint64(b, uint64(t.mesh.NY))
	w := t.mesh.Walls
	b = append(b, byte(t.mesh.DType), byte(w.Left), byte(w.Right), byte(w.Top), byte(w.Bottom), 0)
	if t.frame {
		b[len(b)-1] = 1
	}
	b = appendFloats(b, t.min, t.max, t.hx, t.hy)
	for i, l := range t.lines {
		if l.sums != nil {
			b = append(binary.LittleEndian.AppendUint64(b, uint64(i)), kindLine)
			b = appendFloats(b, l.sums...)
		}
		for _, iy := range slices.Sorted(maps.Keys(l.waiting)) {
			b = append(binary.LittleEndian.AppendUint64(b, uint64(iy)), kindRow)
			b = appendFloats(b, l.waiting[iy]...)
		}
	}
	return b, nil
}

func appendFloats(b []byte, values ...float64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

var errThumbnail = errors.New("thumbnail: malformed bytes")

// UnmarshalBinary sets t to what MarshalBinary wrote.
func (t *Thumbnail) UnmarshalBinary(b []byte) error {
	if len(b) < thumbHeader {
		return errThumbnail
	}
	nx, ny := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	m := solver.Mesh{NX: int(nx), NY: int(ny), DType: solver.DType(b[16]), Walls: solver.Walls{
		Left: solver.Wall(b[17]), Right: solver.Wall(b[18]), Top: solver.Wall(b[19]), Bottom: solver.Wall(b[20])}}
	hx, hy := float64At(b, 38), float64At(b, 46)
	const maxSide = 1 << 40 // points
	if nx < 3 || nx > maxSide || ny < 3 || ny > maxSide || m.DType != solver.Float32 && m.DType != solver.Float64 ||
		slices.Max(b[17:21]) > byte(solver.Neumann) || b[21] > 1 || !(hx > 0 && hx <= math.MaxFloat64/maxSide) ||
		!(hy > 0 && hy <= math.MaxFloat64/maxSide) {
		return errThumbnail
	}
	*t = *NewThumbnail(m, hx, hy)
	if b[21] == 1 {
		*t = *NewFrame(m, hx, hy)
	}
	t.min, t.max = float64At(b, 22), float64At(b, 30)
	sums := 8 * t.scale.x.cells(m.NX)
	for b = b[thumbHeader:]; len(b) > 0; b = b[recordHeader+sums:] {
		if len(b) < recordHeader+sums {
			return errThumbnail
		}
		if err := t.addRecord(binary.LittleEndian.Uint64(b), b[8], b[recordHeader:recordHeader+sums]); err != nil {
			return err
		}
	}
	return nil
}

func (t *Thumbnail) addRecord(number uint64, kind byte, data []byte) error {
	sums := make([]float64, len(data)/8)
	for c := range sums {
		sums[c] = float64At(data, 8*c)
	}
	switch {
	case kind == kindRow && number < uint64(t.mesh.NY):
		return t.add(int(number), sums)
	case kind == kindLine && number < uint64(len(t.lines)) && t.lines[number].sums == nil &&
		t.lines[number].waiting == nil:
		t.lines[number].sums = sums
		return nil
	}
	return fmt.Errorf("%w: record %d of kind %d", errThumbnail, number, kind)
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
		var err error
		if data, err = t.MarshalBinary(); err != nil {
			return nil, err
		}
	}
	parts, err := gather(ctx, name, data)
	if err != nil || parts == nil {
		return nil, err
	}
	for rank, part := range parts[1:] {
		var other Thumbnail
		if err := other.UnmarshalBinary(part); err != nil {
			return nil, fmt.Errorf("%s of rank %d: %w", name, rank+1, err)
		}
		if err := t.Merge(&other); err != nil {
			return nil, fmt.Errorf("%s of rank %d: %w", name, rank+1, err)
		}
	}
	return t, nil
}
