package results

import "math"

// rowSums are the sums over one row, in the order of its columns.
type rowSums struct {
	along, across float64 // squares of the steps in the row, and from the row above
	sum, squares  float64 // of the values; squares times the screening, if there are materials
	outside       float64 // points outside the material, by their part of the mesh
	min, max      extreme

	source, absorbed float64 // see free
}

// sumsOf returns the sums of row iy. above is nil if the row above does not count.
func (t *Tally) sumsOf(above, u []float64, iy int, g *ground) (s rowSums) {
	from, to := 0, t.mesh.NX
	if t.mesh.PeriodicColumns() {
		from, to = 1, t.mesh.NX-1
	}
	s.min, s.max = extreme{math.MaxFloat64, from, iy}, extreme{-math.MaxFloat64, from, iy}
	for ix := from; ix < to; ix++ {
		if g.straight() && (from > 0 || ix == 1) {
			ix = s.addStraight(above, u, ix, min(to, t.mesh.NX-1), g)
			if ix == to {
				break
			}
		}
		v, inside := u[ix], !g.none(ix)
		if inside && v < s.min.Value {
			s.min = extreme{v, ix, iy}
		}
		if inside && v > s.max.Value {
			s.max = extreme{v, ix, iy}
		}
		weight := 1.0
		if from == 0 && (ix == 0 || ix == to-1) {
			weight = 0.5
		}
		s.sum += g.around(ix, float64(weight*v))
		square := float64(weight * float64(v*v))
		if g != nil {
			square = float64(g.screening[ix] * square)
		}
		s.squares += square
		if !inside {
			s.outside += g.around(ix, weight)
		}
		if ix+1 < t.mesh.NX {
			step := u[ix+1] - v + g.liftEast(ix)
			s.along += float64(g.toEast(ix) * float64(step*step))
			if pin := g.pinEast(ix); pin != nil {
				s.along += pin.squares(v, u[ix+1])
			}
		}
		if above != nil {
			step := v - above[ix] + g.liftNorth(ix)
			s.across += float64(g.toNorth(ix) * float64(weight*float64(step*step)))
			if pin := g.pinNorth(ix); pin != nil {
				s.across += float64(weight * pin.squares(above[ix], v))
			}
		}
	}
	weight := t.rowPart(iy)
	s.along, s.sum, s.squares = float64(weight*s.along), float64(weight*s.sum), float64(weight*s.squares)
	s.outside = float64(weight * s.outside)
	return s
}

// addStraight adds columns [lo, hi) of a row, which count whole and have neighbours in the next columns. It does the
// operations of sumsOf in the same order, and returns hi.
func (s *rowSums) addStraight(above, u []float64, lo, hi int, g *ground) int {
	north := above
	if north == nil {
		north = u
	}
	n := hi - lo
	here, next := u[lo:][:n], u[lo+1:][:n]
	north = north[lo:][:n]
	sum, squares, along, across := s.sum, s.squares, s.along, s.across
	least, most := s.min, s.max
	if g == nil {
		for i, v := range here {
			if v < least.Value {
				least.Value, least.IX = v, lo+i
			}
			if v > most.Value {
				most.Value, most.IX = v, lo+i
			}
			step, down := next[i]-v, v-north[i]
			sum += v
			squares += float64(v * v)
			along += float64(step * step)
			across += float64(down * down)
		}
	} else {
		east, toNorth, screening, outside := g.East[lo:][:n], g.North[lo:][:n], g.screening[lo:][:n], g.outside[lo:][:n]
		for i, v := range here {
			if outside[i] {
				s.outside++
			} else {
				if v < least.Value {
					least.Value, least.IX = v, lo+i
				}
				if v > most.Value {
					most.Value, most.IX = v, lo+i
				}
			}
			step, down := next[i]-v, v-north[i]
			sum += v
			squares += float64(screening[i] * float64(v*v))
			along += float64(east[i] * float64(step*step))
			across += float64(toNorth[i] * float64(down*down))
		}
	}
	s.sum, s.squares, s.along, s.min, s.max = sum, squares, along, least, most
	if above != nil {
		s.across = across
	}
	return hi
}
