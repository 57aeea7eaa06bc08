package results

import (
	"fmt"
	"math"

	"jacobi/solver"
)

// Balance is what enters the free part of the mesh and what leaves it. A region, the source and the screening count as
// a whole, a side by its points.
type Balance struct {
	In        *float64 `json:"in"`
	Out       *float64 `json:"out"`
	Source    *float64 `json:"source"`    // the integral of f
	Screening *float64 `json:"screening"` // the integral of k2 u
	Regions   *float64 `json:"regions"`   // the sum of their fluxes; 0 without any
	// Remainder is all fluxes and Source, less Screening: 0 at the solution of the discrete equations.
	Remainder *float64           `json:"remainder"`
	Sides     map[string]Through `json:"sides"` // by name; none for periodic walls
}

// Through is what passes a side in the two directions. Its flux is the difference.
type Through struct {
	In  *float64 `json:"in"`
	Out *float64 `json:"out"`
}

// balance returns the balance of all ranks' parts and of their regions.
func (t *Part) balance(names []string, regions []*region) Balance {
	b := Balance{Source: finite(t.Source.Value()), Screening: finite(0 - t.Absorbed.Value()),
		Sides: map[string]Through{}}
	var in, out, rest, inside Sum
	add := func(s *Sum) {
		[2]*Sum{&in, &out}[direction(s.Value())].Merge(s)
		rest.Merge(s)
	}
	add(&t.Source)
	add(&t.Absorbed)
	for _, g := range regions {
		add(g.Flux)
		inside.Merge(g.Flux)
	}
	b.Regions = finite(inside.Value())
	for i, name := range names {
		in.Merge(&t.Through[0][i])
		out.Merge(&t.Through[1][i])
		rest.Merge(&t.Flux[i])
		if name != "" {
			b.Sides[name] = Through{finite(t.Through[0][i].Value()), finite(0 - t.Through[1][i].Value())}
		}
	}
	b.In, b.Out, b.Remainder = finite(in.Value()), finite(0-out.Value()), finite(rest.Value())
	return b
}

// direction returns the place of a flux among those in and out.
func direction(v float64) int {
	if v > 0 {
		return 0
	}
	return 1
}

// pass adds what passes a part of a wall to what passes the wall in that direction.
func (t *pair) pass(wall int, v float64) { t.part.Through[direction(v)][wall].Add(v) }

// passCorner adds what passes half a spacing of a fixed wall at a cell between the two newest rows: through half of the
// face from a point of the wall to the free point beside it, less what the quarter of the cell makes. In a corner
// between two fixed walls, corners does that.
func (t *pair) passCorner(l line, ix int, beside line, jx int, made float64) {
	wall, side := t.rowWall(l.iy, solver.Dirichlet), t.columnWall(ix, solver.Dirichlet)
	if (wall < 0) == (side < 0) {
		return
	}
	_, column := t.place(l.iy, ix)
	weight, end, length := float64(t.now.toNorth(column)*(t.hx/(2*t.hy))), t.columnWall(ix, solver.Neumann), t.hy/2
	n, nx := beside, ix
	pin, second, part := t.now.pinNorth(column), l.iy == t.now.iy, t.hx/(2*t.hy)
	if wall < 0 {
		pin, second, part = l.pinEast(min(ix, jx)), jx < ix, t.hy/(2*t.hx)
		wall, weight = side, float64(l.toEast(min(ix, jx))*(t.hy/(2*t.hx)))
		n, nx, end, length = l, jx, t.rowWall(l.iy, solver.Neumann), t.hx/2
	}
	flux := 0.0
	if !t.held(n, nx) {
		flux = float64(weight * (l.values[ix] - n.values[nx]))
		if pin != nil && second {
			flux -= float64(part * pin.flux(1, l.values[ix]))
		} else if pin != nil {
			flux -= float64(part * pin.flux(0, l.values[ix]))
		}
		if end >= 0 { // the face lies in a Neumann wall: see addWall
			iy, column := t.place(l.iy, ix)
			if g, err := t.wallFlux(end, iy, column, l.values[ix]); err == nil {
				flux -= float64(g * length)
			}
		}
	}
	t.pass(wall, flux-made)
}

// chunk is values of a part of a row, which stay in a near cache.
type chunk [4096]float64

// free returns what f makes at the free points of a row, and what k2 u absorbs, as a negative number.
func (t *Tally) free(l line) (source, absorbed float64, err error) {
	if t.plain || l.iy < t.stripe.Lo || l.iy >= t.stripe.Hi {
		return 0, 0, nil
	}
	var outside []bool
	var screening, turn []float64
	if l.ground != nil {
		outside, screening, turn = l.outside, l.screening, l.turn
	}
	iy, _ := t.mesh.Canonical(l.iy)
	k2, inside := t.problem.Screening(), t.area(l.iy, min(1, t.hi-1)) // the ends may count half
	buf, _ := t.chunks.Get().(*chunk)
	if buf == nil {
		buf = new(chunk)
	}
	defer t.chunks.Put(buf)
	for lo := t.lo; lo < t.hi; lo += len(buf) {
		f := buf[:min(len(buf), t.hi-lo)]
		if err := t.problem.RightHandSide(iy, lo, f); err != nil {
			return 0, 0, err
		}
		for i := 0; i < len(f); i++ {
			end := min(len(f), t.mesh.NX-1-lo)
			if l.fixed == nil && l.ground != nil && turn == nil && lo+i > 0 && i < end {
				source, absorbed = l.addFree(source, absorbed, lo+i, f[i:end], inside)
				if i = end; i == len(f) {
					break
				}
			}
			ix, made, area, v := lo+i, f[i], inside, l.values[lo+i]
			if l.fixed != nil && l.fixed[ix] || outside != nil && outside[ix] {
				continue
			}
			if screening != nil {
				k2 = screening[ix]
			}
			if ix == 0 || ix == t.mesh.NX-1 {
				area = t.area(l.iy, ix)
			}
			if turn != nil {
				made = float64(made * turn[ix])
			}
			source += float64(made * area)
			absorbed -= float64(float64(k2*v) * area)
		}
	}
	return source, absorbed, nil
}

// addFree adds what points from column lo on, each of the given area, make and absorb to the sums of free. It does the
// operations of free in the same order.
func (l line) addFree(source, absorbed float64, lo int, f []float64, area float64) (float64, float64) {
	values, screening, outside := l.values[lo:][:len(f)], l.screening[lo:][:len(f)], l.outside[lo:][:len(f)]
	for i, made := range f {
		if outside[i] {
			continue
		}
		source += float64(made * area)
		absorbed -= float64(float64(screening[i]*values[i]) * area)
	}
	return source, absorbed
}

// area returns the area of the square of a point, in the mesh.
func (t *Tally) area(iy, ix int) float64 {
	return float64(t.hx*t.hy) * t.rowPart(iy) * t.columnPart(ix)
}

// String returns the balance for the summary.
func (b Balance) String() string {
	text := [2]string{"in " + number(b.In), "out " + number(b.Out)}
	note := func(name string, v *float64, sign float64) {
		if v != nil && *v != 0 {
			text[direction(*v*sign)] += fmt.Sprintf(" (%s %s)", name, number(v))
		}
	}
	note("source", b.Source, 1)
	note("screening", b.Screening, -1)
	rest := number(b.Remainder)
	if b.Remainder != nil {
		rest = fmt.Sprintf("%.3g", *b.Remainder)
	}
	net := ""
	if b.Regions != nil && *b.Regions != 0 {
		net = ", regions " + number(b.Regions) + " net"
	}
	return text[0] + ", " + text[1] + net + ", remainder " + rest
}

// both returns what passes a side in the two directions, if neither is less than a hundredth of all that enters.
func (b Balance) both(side string) string {
	s := b.Sides[side]
	if b.In == nil || s.In == nil || s.Out == nil || !(math.Min(*s.In, *s.Out) > *b.In/100) {
		return ""
	}
	return fmt.Sprintf(" (in %s, out %s)", number(s.In), number(s.Out))
}
