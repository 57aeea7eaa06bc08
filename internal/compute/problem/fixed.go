package problem

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"jacobi/configs"
	"jacobi/internal/base/imagefile"
	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/rowmath"
	"jacobi/solver"
)

// fixedPoints says which points keep their initial values besides those of fixed walls: the points for which a
// condition, an array of truth values or a picture says so.
type fixedPoints struct {
	part
	picture *picture // nil unless a picture says it
}

// none reports whether there are no fixed points.
func (f fixedPoints) none() bool { return f.zero() }

// openFixed opens the value of problem.fixed, or takes its picture if it was read.
func (p *Problem) openFixed(ctx context.Context, text string, read *picture) (f fixedPoints, err error) {
	f.part = part{key: "problem.fixed", text: text}
	switch {
	case configs.IsArray(text):
		err = p.openArray(&f.part, true)
	case imagefile.Named(text):
		if f.picture = read; read == nil {
			f.picture, err = openPicture(ctx, text, p.mesh)
		}
		if err == nil {
			f.node = f.picture.condition([]bool{false, true})
		}
	default:
		f.node, err = compile(text, p.mesh, p.numbers.width, p.numbers.height)
		if err == nil && !f.node.isBool {
			err = errors.New("it is a number, not a condition")
		}
		err = allow(err, fixedTakes)
	}
	return f, err
}

// FixedRow sets dst[ix] if the point at column ix of row iy keeps its value, as solver.FixedRows says: it is fixed,
// lies outside the material, or belongs to an island that is not solved.
func (p *Problem) FixedRow(iy int, dst []bool) error {
	if err := p.GivenRow(iy, dst); err != nil || !p.Porous() {
		return err
	}
	if p.fixed.none() {
		if err := p.OutsideRow(iy, dst); err != nil {
			return err
		}
	} else {
		outside := make([]bool, len(dst))
		if err := p.OutsideRow(iy, outside); err != nil {
			return err
		}
		for ix, on := range outside {
			dst[ix] = dst[ix] || on
		}
	}
	p.markPatches(iy, dst, still)
	return nil
}

// GivenRow sets dst[ix] if the point at column ix of row iy is fixed by problem.fixed or the drawing.
func (p *Problem) GivenRow(iy int, dst []bool) error {
	if iy < 0 || iy >= p.mesh.NY || len(dst) != p.mesh.NX {
		return fmt.Errorf("fixed points of row %d of %d into %d points, not %d", iy, p.mesh.NY, len(dst),
			p.mesh.NX)
	}
	iy, _ = p.mesh.Canonical(iy)
	if err := p.fixed.row(iy, dst); err != nil {
		return err
	}
	p.worked()
	if p.copiesFix() {
		if err := p.eachCopy(iy, dst, func(int, int, int) {}); err != nil {
			return err
		}
	}
	if p.mesh.PeriodicColumns() {
		dst[0], dst[len(dst)-1] = dst[len(dst)-2], dst[1]
	}
	return nil
}

// row writes the fixed points of row iy to dst.
func (f fixedPoints) row(iy int, dst []bool) error {
	switch {
	case f.none():
		clear(dst)
	case f.file != nil:
		if err := f.file.readBools(dst, iy); err != nil {
			return fmt.Errorf("%s %q: row %d: %w", f.key, f.text, iy, err)
		}
	default:
		f.mark(&span{row: iy}, dst)
	}
	return nil
}

// mark writes whether the condition holds at the columns of row s.row to dst.
func (f fixedPoints) mark(s *span, dst []bool) {
	if b := f.node.limitIn(s, len(dst)); !b.open() {
		rowmath.Fill(dst, b.lo > 0)
		return
	}
	values := s.temp(chunk)
	defer s.release()
	for s.col = 0; s.col < len(dst); s.col += chunk {
		part := dst[s.col:min(len(dst), s.col+chunk)]
		f.node.eachPart(s, len(part), func(from, to int, b bounds) {
			if !b.open() {
				rowmath.Fill(part[from:to], b.lo > 0)
				return
			}
			f.node.fill(s, values[:to-from])
			for i, v := range values[:to-from] {
				part[from+i] = v != 0
			}
		})
	}
}

// CountFixed returns how many of the points that a sweep could change problem.fixed fixes in rows [lo, hi) of the mesh.
// It stops when ctx ends.
func (p *Problem) CountFixed(ctx context.Context, lo, hi int) (int64, error) {
	interior := p.mesh.Interior()
	lo, hi = max(lo, interior.Lo), min(hi, interior.Hi)
	if p.fixed.none() || lo >= hi {
		return 0, nil
	}
	var total atomic.Int64
	rows := make([][]bool, runtime.GOMAXPROCS(0))
	err := parallel.On(len(rows), hi-lo, func(k, i int) error {
		if err := ended(ctx); err != nil {
			return err
		}
		if rows[k] == nil {
			rows[k] = make([]bool, p.mesh.NX)
		}
		n, err := p.countRow(lo+i, rows[k])
		total.Add(n)
		return err
	})
	return total.Load(), err
}

// countRow returns the fixed points among the interior columns of row iy. row is scratch.
func (p *Problem) countRow(iy int, row []bool) (int64, error) {
	err := p.GivenRow(iy, row)
	return p.countInner(row), err
}

// countInner returns how many points of a row are set in its interior columns; nil has none.
func (p *Problem) countInner(row []bool) (n int64) {
	if row == nil {
		return 0
	}
	lo, hi := p.mesh.InteriorColumns()
	for _, fixed := range row[lo:hi] {
		if fixed {
			n++
		}
	}
	return n
}

// checkFixed looks for a point that is free and, if the solution needs it, one that is fixed. It reads no more rows
// than that takes.
func (p *Problem) checkFixed(ctx context.Context) error {
	if p.fixed.none() {
		return p.CheckFixed(0)
	}
	lo, hi := p.mesh.InteriorColumns()
	interior := p.mesh.Interior()
	row := make([]bool, p.mesh.NX)
	var fixed int64
	free := false
	for iy := interior.Lo; iy < interior.Hi && !(free && (fixed > 0 || !p.floating())); iy++ {
		if err := ended(ctx); err != nil {
			return err
		}
		n, err := p.countRow(iy, row)
		if err != nil {
			return err
		}
		fixed += n
		free = free || n < int64(hi-lo)
	}
	return p.CheckFixed(fixed)
}

// CheckFixed refuses a problem without free points, and one whose solution is not unique. fixed is the number of points
// that CountFixed finds in the whole mesh.
func (p *Problem) CheckFixed(fixed int64) error {
	if all := p.points(); fixed >= all {
		return fmt.Errorf("%s %q: it fixes all %d points that a sweep could change; at least one has to be free",
			p.fixed.key, p.fixed.text, all)
	}
	if err := p.checkLoose(); err != nil || p.loose {
		return err
	}
	if p.weighted || fixed > 0 || !p.floating() { // scanIslands looks at a weighted problem
		return nil
	}
	if k2 := p.numbers.screening; k2 > 0 {
		hx, hy := p.Spacings()
		return fmt.Errorf("problem.screening %g: with no side that has values and no points in %s, it must be at "+
			"least %g on this mesh, as rounding loses less; values on a side or fixed points help, too", k2,
			p.fixed.key, leastScreening*2*(1/(hx*hx)+1/(hy*hy)))
	}
	return p.undetermined()
}

// undetermined refuses a problem whose constant nothing determines.
func (p *Problem) undetermined() error {
	if lines := (lost{area: p.untouched(context.Background()).area}).warnings(p); lines != nil {
		return fmt.Errorf("%s; no side has values, so nothing else determines the field", lines[0])
	}
	return fmt.Errorf("problem.left %q, right %q, top %q, bottom %q: no side has values, so any constant can be "+
		"added to a solution; give a value on a side, points in %s, problem.screening above 0, or a robin side "+
		"with h above 0",
		p.sides[west].text, p.sides[east].text, p.sides[north].text, p.sides[south].text, p.fixed.key)
}

// points returns the number of points that a sweep changes if none is fixed by problem.fixed.
func (p *Problem) points() int64 {
	lo, hi := p.mesh.InteriorColumns()
	return int64(hi-lo) * int64(p.mesh.Interior().Rows())
}

// leastScreening is the part of the diagonal of the equations that a screening has to be to determine a constant. h is
// rounded to 2^-54 of itself, so the screening is off by a part in 4096 at most.
const leastScreening = 0x1p-42

// floating reports whether neither the sides nor the screening determine the constant of a solution.
func (p *Problem) floating() bool {
	return p.unfixed() && (p.numbers.screening == 0 ||
		p.mesh.DType == solver.Float64 && 1-2*p.numbers.scale < leastScreening)
}
