package problem

// A point that an array fixes in a periodic row or column is the one that it copies: this is fixed, too, and has the
// value of problem.initial there, unless the array fixes it itself. What areas and drawings fix goes on around a period
// anyway.

// copiesFix reports whether the array may fix points by their copies.
func (p *Problem) copiesFix() bool {
	return (p.mesh.PeriodicColumns() || p.mesh.PeriodicRows()) && !p.fixed.none() && !p.fixed.node.covers() &&
		p.drawing == nil && p.fixed.picture == nil && p.regions.list == nil
}

// eachCopy adds to dst the points of row iy, a canonical row, that the array fixes only at a copy, and calls f with
// each of them and the place of its first such copy. dst has the points that the array fixes themselves.
func (p *Problem) eachCopy(iy int, dst []bool, f func(ix, copyY, copyX int)) error {
	rows, n := []int{iy}, len(dst)
	if p.mesh.PeriodicRows() {
		if iy == p.mesh.NY-2 {
			rows = append(rows, 0)
		}
		if iy == 1 {
			rows = append(rows, p.mesh.NY-1)
		}
	}
	lo, hi := p.mesh.InteriorColumns()
	marks := make([]bool, n)
	for _, row := range rows {
		if err := p.fixed.row(row, marks); err != nil {
			return err
		}
		take := func(ix, copyX int) {
			if marks[copyX] && !dst[ix] {
				dst[ix] = true
				f(ix, row, copyX)
			}
		}
		for ix := lo; ix < hi && row != iy; ix++ {
			take(ix, ix)
		}
		if p.mesh.PeriodicColumns() {
			take(n-2, 0)
			take(1, n-1)
		}
	}
	return nil
}

// fillCopied writes to dst, interior columns of row iy, the values of problem.initial at copies that fix points.
func (p *Problem) fillCopied(iy int, dst []byte) error {
	lo, _ := p.mesh.InteriorColumns()
	size := p.mesh.DType.Size()
	own := make([]bool, p.mesh.NX)
	if err := p.fixed.row(iy, own); err != nil {
		return err
	}
	var fault error
	err := p.eachCopy(iy, own, func(ix, copyY, copyX int) {
		v, err := p.initialAt(copyY, copyX)
		if err != nil {
			fault = err
		}
		put(p.mesh.DType, dst[(ix-lo)*size:], v)
	})
	if err == nil {
		err = fault
	}
	return err
}

// initialAt returns the value of problem.initial at a point.
func (p *Problem) initialAt(iy, ix int) (float64, error) {
	if p.initial.file == nil {
		return p.value(p.initial, &span{}, iy, ix)
	}
	v, err := p.initial.file.exact(iy, ix)
	if err == nil {
		err = p.finite(p.initial, iy, ix, v)
	}
	return v, err
}
