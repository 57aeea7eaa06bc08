package problem

import (
	"context"
	"encoding/binary"
	"errors"
)

// become returns what becomes of a part: its number if it is driven, held if it is solved like the others.
func (v *Islands) become(part int32) int32 {
	if part == still && !v.Held && len(v.Driven) == 0 {
		return held
	}
	return part
}

// Patches returns where the islands lie in the rows that were surveyed, as unsigned varints: for each row the number of
// patches, and for each of them the columns between the patch before and it, its length, and what becomes of it. rank
// is the place of the survey among those that were united.
func (s *Survey) Patches(v *Islands, rank int) (data []byte) {
	if !s.Any {
		return nil
	}
	for _, row := range s.found.patches {
		var left []patch
		for _, c := range row {
			if c.part = s.place[s.found.root(c.part)]; c.part >= 0 {
				c.part = v.Places[rank][c.part]
			}
			if c.part = v.become(c.part); c.part != held {
				left = append(left, c)
			}
		}
		data = binary.AppendUvarint(data, uint64(len(left)))
		end := int32(0)
		for _, c := range left {
			for _, n := range []int32{c.lo - end, c.hi - c.lo, c.part - still} {
				data = binary.AppendUvarint(data, uint64(n))
			}
			end = c.hi
		}
	}
	return data
}

// TakeIslands has the problem leave out, keep or solve its islands, whose Patches in all rows are given. It is called
// before the operator, the field or the fixed points are read.
func (p *Problem) TakeIslands(v *Islands, data []byte) error {
	bad := false
	next := func(most int) int32 {
		n, size := binary.Uvarint(data)
		if size <= 0 || n > uint64(most) {
			bad = true
			return 0
		}
		data = data[size:]
		return int32(n)
	}
	p.islands, p.patches = v, make([][]patch, p.mesh.NY)
	in := p.mesh.Interior()
	for iy := in.Lo; iy < in.Hi && !bad; iy++ {
		row, end := make([]patch, next(p.mesh.NX)), int32(0)
		for i := range row {
			lo := end + next(p.mesh.NX)
			end = lo + next(p.mesh.NX)
			row[i] = patch{lo, end, next(len(v.Driven)-still) + still}
		}
		bad = bad || int(end) >= p.mesh.NX+1
		p.patches[iy] = row
	}
	if bad || len(data) > 0 {
		return errors.New("these are no patches of islands")
	}
	return nil
}

// FindIslands surveys all rows and takes the islands that it finds.
func (p *Problem) FindIslands(ctx context.Context) error {
	s, err := p.Survey(ctx, 0, p.mesh.NY)
	if err != nil || !s.Any {
		return err
	}
	v, err := p.UniteSurveys([]Survey{s})
	if err != nil {
		return err
	}
	return p.TakeIslands(v, s.Patches(v, 0))
}

// eachPatch calls f for the patches of islands in row iy, with their copies in periodic columns.
func (p *Problem) eachPatch(iy int, f func(lo, hi int, part int32)) {
	if p.patches == nil {
		return
	}
	iy, _ = p.mesh.Canonical(iy)
	n := p.mesh.NX
	for _, c := range p.patches[iy] {
		f(int(c.lo), int(c.hi), c.part)
		if p.mesh.PeriodicColumns() {
			if c.lo == 1 {
				f(n-1, n, c.part)
			}
			if int(c.hi) == n-1 {
				f(0, 1, c.part)
			}
		}
	}
}

// markPatches sets dst[ix] for the points of row iy of which kind becomes.
func (p *Problem) markPatches(iy int, dst []bool, kind int32) {
	p.eachPatch(iy, func(lo, hi int, part int32) {
		for ix := lo; ix < hi && part == kind; ix++ {
			dst[ix] = true
		}
	})
}
