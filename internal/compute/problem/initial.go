package problem

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"jacobi/solver"
)

// value returns q at one point, rounded to the field's type.
func (p *Problem) value(q part, s *span, iy, ix int) (float64, error) {
	v := q.node.at(s, iy, ix)
	return p.round(v), p.finite(q, iy, ix, v)
}

// Row writes row iy, including the boundary, to dst: NX dense little-endian values of the mesh's type. A value that is
// not finite in that type is an error. Points outside the material, and of islands that are not solved, have 0. Row may
// be called concurrently.
func (p *Problem) Row(iy int, dst []byte) error {
	if iy < 0 || iy >= p.mesh.NY || len(dst) != p.mesh.RowBytes() {
		return fmt.Errorf("row %d of %d into %d bytes, not %d", iy, p.mesh.NY, len(dst), p.mesh.RowBytes())
	}
	size := p.mesh.DType.Size()
	for k, ix := range [2]int{0, p.mesh.NX - 1} {
		if !p.wallColumn(ix) {
			continue
		}
		v, err := p.value(p.sides[k].part, &span{}, iy, ix)
		if err != nil {
			return err
		}
		put(p.mesh.DType, dst[ix*size:], v)
	}
	q, from := p.inner(iy)
	lo, hi := p.mesh.InteriorColumns()
	inner := dst[lo*size : hi*size]
	var err error
	if q.file != nil {
		err = p.fileRow(q, from, inner)
	} else {
		err = p.partRow(q, from, inner)
	}
	if err == nil && q.key == p.initial.key && p.copiesFix() {
		err = p.fillCopied(from, inner)
	}
	if err == nil && p.mesh.PeriodicColumns() {
		copy(dst[:size], inner[len(inner)-size:])
		copy(dst[len(dst)-size:], inner[:size])
	}
	if err != nil || !p.Porous() || bytes.Count(dst, []byte{0}) == len(dst) { // there is nothing to clear
		return err
	}
	outside := make([]bool, p.mesh.NX)
	if err := p.OutsideRow(iy, outside); err != nil {
		return err
	}
	p.markPatches(iy, outside, still)
	for ix, on := range outside {
		if on {
			clear(dst[ix*size:][:size])
		}
	}
	return nil
}

// inner returns the part that defines row iy but for the columns of fixed and periodic walls, and the row at which to
// evaluate the part.
func (p *Problem) inner(iy int) (part, int) {
	switch {
	case iy == 0 && p.wallRow(iy):
		return p.sides[north].part, iy
	case p.wallRow(iy):
		return p.sides[south].part, iy
	}
	canonical, _ := p.mesh.Canonical(iy)
	return p.initial, canonical
}

// partRow writes the values of the expression q in the interior columns of row iy to dst.
func (p *Problem) partRow(q part, iy int, dst []byte) error {
	size := p.mesh.DType.Size()
	lo, hi := p.mesh.InteriorColumns()
	if !q.node.onX {
		v, err := p.value(q, &span{}, iy, lo)
		if err != nil {
			return err
		}
		p.repeat(dst, v)
		return nil
	}
	s := &span{row: iy}
	var buf [chunk]float64
	for s.col = lo; s.col < hi; s.col += chunk {
		values := buf[:min(chunk, hi-s.col)]
		q.node.fill(s, values)
		p.worked()
		for i, v := range values {
			if r := p.round(v); r-r != 0 { // NaN or infinite
				return p.finite(q, iy, s.col+i, v)
			}
		}
		p.mesh.DType.Encode(dst[(s.col-lo)*size:], values)
	}
	return nil
}

// put writes v, rounded to type d, to dst.
func put(d solver.DType, dst []byte, v float64) {
	if d == solver.Float32 {
		binary.LittleEndian.PutUint32(dst, math.Float32bits(float32(v)))
		return
	}
	binary.LittleEndian.PutUint64(dst, math.Float64bits(v))
}

// repeat fills dst with v by copies of doubling length, which run at the speed of memory.
func (p *Problem) repeat(dst []byte, v float64) {
	if math.Float64bits(v) == 0 {
		clear(dst)
		return
	}
	size := p.mesh.DType.Size()
	put(p.mesh.DType, dst, v)
	for n := size; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// valueAt returns the value of type d at the start of src.
func valueAt(d solver.DType, src []byte) float64 {
	if d == solver.Float32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(src)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(src))
}

// fileRow reads the interior columns of row iy of the file of q, which has the field's type, into dst. A NaN is an
// unknown value, for which 0 stands, unless the point is fixed. Another value that is not finite is an error, or 0
// outside the material.
func (p *Problem) fileRow(q part, iy int, dst []byte) error {
	size := p.mesh.DType.Size()
	lo, _ := p.mesh.InteriorColumns()
	if err := q.file.read(dst, iy, lo); err != nil {
		return fmt.Errorf("%s %q: row %d: %w", q.key, q.text, iy, err)
	}
	p.worked()
	var fixed []bool
	r := p.take(iy)
	defer p.give(r)
	for i := 0; i < len(dst); i += size {
		v := valueAt(p.mesh.DType, dst[i:])
		if v-v == 0 { // finite
			continue
		}
		if fixed == nil {
			fixed = make([]bool, p.mesh.NX)
			if err := p.GivenRow(iy, fixed); err != nil {
				return err
			}
		}
		if outside, err := r.outside(iy, lo+i/size); err != nil {
			return err
		} else if outside || v != v && !fixed[lo+i/size] {
			clear(dst[i:][:size])
			continue
		}
		exact, err := q.file.exact(iy, lo+i/size) // the value before rounding, for the message
		if err == nil {
			err = p.finite(q, iy, lo+i/size, exact)
		}
		return err
	}
	return nil
}
