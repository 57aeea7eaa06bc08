package results

import (
	"cmp"
	"errors"
	"math"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// Gradient works out -a grad u at the points of the mesh. In each direction it is the mean of what passes through the
// two faces beside a point, a face having the coefficient that the equations give it. At a fixed point, faces to free
// neighbours alone count, if there are any: it has the field outside an electrode. At a fixed wall it is that of the
// one face inside, at a Neumann or Robin wall what passes through the wall. Points outside the material have NaN.
type Gradient struct {
	problem Problem
	mesh    solver.Mesh
	hx, hy  float64
}

// NewGradient returns the Gradient of a problem.
func NewGradient(p Problem) *Gradient {
	g := &Gradient{problem: p, mesh: p.Mesh()}
	g.hx, g.hy = p.Spacings()
	return g
}

// footing is what the Gradient knows of a row besides its values.
type footing struct {
	iy      int // canonical
	values  []float64
	ground  *ground
	keeps   []bool // points that are not free
	outside []bool
}

// Along writes the component along x, or else along y, of rows [lo, lo+len(dst)) to dst. rows begins with the row above
// them and ends with the row below; nil stands for none. Beyond periodic ends the rows go on.
func (g *Gradient) Along(x bool, lo int, rows, dst [][]float64) error {
	stand := make([]*footing, len(rows))
	err := parallel.Each(len(rows), func(i int) (err error) {
		if rows[i] != nil {
			stand[i], err = g.footing(lo-1+i, rows[i])
		}
		return err
	})
	if err != nil {
		return err
	}
	return parallel.Each(len(dst), func(i int) error {
		if x {
			return g.alongX(stand[i+1], dst[i])
		}
		return g.alongY(stand[i], stand[i+1], stand[i+2], dst[i])
	})
}

// footing reads what belongs to row iy.
func (g *Gradient) footing(iy int, values []float64) (*footing, error) {
	if n := g.mesh.NY - 2; g.mesh.PeriodicRows() {
		iy = 1 + (iy-1+n)%n
	}
	nx := g.mesh.NX
	f := &footing{iy: iy, values: values, keeps: make([]bool, nx), outside: make([]bool, nx)}
	var errs []error
	if given := g.problem.Given(); given != nil {
		errs = append(errs, given.FixedRow(iy, f.keeps))
	}
	if materials := g.problem.Materials(); materials != nil {
		f.ground = newGround(nx)
		errs = append(errs, materials.Faces(iy, &f.ground.Faces), materials.OutsideRow(iy, f.outside))
	}
	interior, w := g.mesh.Interior(), g.mesh.Walls
	for ix := range f.keeps {
		f.keeps[ix] = f.keeps[ix] || f.outside[ix] || iy < interior.Lo || iy >= interior.Hi
	}
	f.keeps[0] = f.keeps[0] || w.Left == solver.Dirichlet
	f.keeps[nx-1] = f.keeps[nx-1] || w.Right == solver.Dirichlet
	return f, cmp.Or(errs...)
}

// face is what passes through the face between a point and a neighbour.
type face struct {
	exists bool
	flux   float64
	free   bool // the neighbour is free
}

// meet returns the component at a point between two faces.
func meet(before, after face, keeps bool) float64 {
	switch {
	case !after.exists, keeps && before.exists && before.free && !after.free:
		return before.flux
	case !before.exists, keeps && after.free && !before.free:
		return after.flux
	}
	return (before.flux + after.flux) / 2
}

func (g *Gradient) alongX(f *footing, dst []float64) error {
	var before face
	for ix, v := range f.values {
		after := face{exists: ix+1 < len(dst)}
		if after.exists {
			step := v - f.values[ix+1] - f.ground.liftEast(ix)
			after.flux, after.free = float64(f.ground.toEast(ix)*step)/g.hx, !f.keeps[ix+1]
		}
		pin := f.ground.pinEast(ix)
		if pin != nil {
			after.flux = -pin.flux(0, v) / g.hx
		}
		dst[ix] = meet(before, after, f.keeps[ix])
		if f.outside[ix] {
			dst[ix] = math.NaN()
		}
		if pin != nil {
			after.flux = pin.flux(1, f.values[ix+1]) / g.hx
		}
		before, before.free = after, !f.keeps[ix]
	}
	if n := len(dst); g.mesh.PeriodicColumns() {
		dst[0], dst[n-1] = dst[n-2], dst[1]
	}
	w := g.mesh.Walls
	return errors.Join(g.through(left, w.Left, f, 0, dst), g.through(right, w.Right, f, len(dst)-1, dst))
}

func (g *Gradient) alongY(above, f, below *footing, dst []float64) error {
	for ix, v := range f.values {
		var before, after face
		if above != nil {
			step := above.values[ix] - v - f.ground.liftNorth(ix)
			before = face{true, float64(f.ground.toNorth(ix)*step) / g.hy, !above.keeps[ix]}
			if pin := f.ground.pinNorth(ix); pin != nil {
				before.flux = pin.flux(1, v) / g.hy
			}
		}
		if below != nil {
			step := v - below.values[ix] - below.ground.liftNorth(ix)
			after = face{true, float64(below.ground.toNorth(ix)*step) / g.hy, !below.keeps[ix]}
			if pin := below.ground.pinNorth(ix); pin != nil {
				after.flux = -pin.flux(0, v) / g.hy
			}
		}
		dst[ix] = meet(before, after, f.keeps[ix])
		if f.outside[ix] {
			dst[ix] = math.NaN()
		}
	}
	var errs []error
	for ix := range dst {
		if above == nil {
			errs = append(errs, g.through(top, g.mesh.Walls.Top, f, ix, dst))
		}
		if below == nil {
			errs = append(errs, g.through(bottom, g.mesh.Walls.Bottom, f, ix, dst))
		}
	}
	return errors.Join(errs...)
}

// through gives a free point of a Neumann or Robin wall what passes through the wall there.
func (g *Gradient) through(side int, wall solver.Wall, f *footing, ix int, dst []float64) error {
	if wall != solver.Neumann || f.keeps[ix] {
		return nil
	}
	inward, err := g.problem.WallFlux(side, f.iy, ix, f.values[ix])
	if side == right || side == bottom {
		inward = -inward
	}
	dst[ix] = inward
	return err
}
