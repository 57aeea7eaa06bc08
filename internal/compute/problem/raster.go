package problem

import (
	"bytes"
	"math"
)

// grid has values in pixels that cover the mesh from side to side, between periodic sides one period of it. Each pixel
// is an area with its edges: a point, or the edge itself, that several pixels touch belongs to each of them.
type grid[T comparable] struct {
	width, height int
	pixels        []T     // rows one after the other
	across, down  axis    // of the mesh
	firsts        []int32 // by row of pixels: the first of the rows up to it that are equal
}

// newGrid returns the grid with these pixels. Between periodic sides it goes on as it begins. equal compares rows.
func newGrid[T comparable](width, height int, pixels []T, across, down axis, equal func(a, b []T) bool) *grid[T] {
	r := &grid[T]{width: width, height: height, pixels: pixels, across: across, down: down}
	r.firsts = newFirsts(height, func(y int) bool { return equal(r.row(y), r.row(y-1)) })
	return r
}

// raster is a picture. Its pixels are the numbers of their colours.
type raster struct {
	*grid[uint8]
	*blocks                    // one
	divisions map[int]division // of the pixels that are divided, by their numbers
}

// newRaster returns the picture that a mixture has read.
func newRaster(m *mixture) *raster {
	equal := func(a, b []uint8) bool { return bytes.Equal(a, b) && bytes.IndexByte(a, divided) < 0 }
	return &raster{newGrid(m.width, m.height, m.pixels, m.across, m.down, equal), m.block(), m.divisions}
}

func (r *grid[T]) row(y int) []T { return r.pixels[y*r.width:][:r.width] }

// touched returns the pixels, of n, that the places from lo to hi touch. Beyond a periodic end they go on.
func (a axis) touched(lo, hi float64, n int) (first, last int) {
	first = int(math.Ceil(lo*float64(n)/a.intervals)) - 1
	last = int(math.Floor(hi * float64(n) / a.intervals))
	if !a.periodic {
		first, last = max(first, 0), min(last, n-1)
	}
	return first, last
}

// crossed returns which of the pixels, of n, the places of points touch.
func (a axis) crossed(n, points int) []bool {
	marks := make([]bool, n)
	for i := range points {
		for first, last := a.touched(float64(i), float64(i), n); first <= last; first++ {
			marks[(first+n)%n] = true
		}
	}
	return marks
}

// each calls f with the values of the pixels that a box touches, until it returns false, and with their numbers across
// and down, which go on beyond periodic ends.
func (r *grid[T]) each(b box, f func(value T, x, y int) bool) {
	left, right := r.across.touched(b.left, b.right, r.width)
	top, bottom := r.down.touched(b.top, b.bottom, r.height)
	for y := top; y <= bottom; y++ {
		row := r.row((y + r.height) % r.height)
		for x := left; x <= right; x++ {
			if !f(row[(x+r.width)%r.width], x, y) {
				return
			}
		}
	}
}

// at returns the value at a place, that of the last pixel that touches it.
func (r *grid[T]) at(s *spot) T {
	_, x := r.across.touched(s.x, s.x, r.width)
	_, y := r.down.touched(s.y, s.y, r.height)
	return r.row((y + r.height) % r.height)[(x+r.width)%r.width]
}

// each calls f with the colours that a box touches, until it returns false.
func (r *raster) each(b box, f func(colour uint8) bool) {
	r.grid.each(b, func(c uint8, x, y int) bool {
		if c != divided {
			return f(c)
		}
		e := r.division(x, y)
		return e.each(box{r.across.within(b.left, r.width, x), r.across.within(b.right, r.width, x),
			r.down.within(b.top, r.height, y), r.down.within(b.bottom, r.height, y)}, f)
	})
}

// division returns the division of a pixel that has one.
func (r *raster) division(x, y int) division {
	return r.divisions[(y+r.height)%r.height*r.width+(x+r.width)%r.width]
}

// within returns where a place lies in a pixel, of n: from 0, at its beginning or before it, to 1.
func (a axis) within(place float64, n, pixel int) float64 {
	return min(max(place*float64(n)/a.intervals-float64(pixel), 0), 1)
}

// at returns the colour at a place, the last one that touches it.
func (r *raster) at(s *spot) (colour uint8) {
	if len(r.divisions) == 0 {
		return r.grid.at(s)
	}
	r.each(box{s.x, s.x, s.y, s.y}, func(c uint8) bool {
		colour = c
		return true
	})
	return colour
}

// last returns the last of the chosen colours that touch a place, and whether there is one.
func (r *raster) last(s *spot, chosen []bool) (colour uint8, ok bool) {
	r.each(box{s.x, s.x, s.y, s.y}, func(c uint8) bool {
		if chosen[c] && (!ok || c > colour) {
			colour, ok = c, true
		}
		return true
	})
	return colour, ok
}

// condition returns whether one of the chosen colours touches a place.
func (r *raster) condition(chosen []bool) node {
	n := node{isBool: true}
	n.spot = func(s *spot) float64 {
		_, ok := r.last(s, chosen)
		return truth(ok)
	}
	n.limit = func(b box) bounds {
		out := bounds{lo: 1}
		r.each(b, func(c uint8) bool {
			if chosen[c] {
				out.hi = 1
			} else {
				out.lo = 0
			}
			return out.lo == out.hi
		})
		return out
	}
	return r.node(n)
}

// values returns the values of colours.
func (r *raster) values(of []float64) node {
	return r.node(node{
		spot: func(s *spot) float64 {
			c := r.at(s)
			s.decide(float64(c))
			return of[c]
		},
		limit: func(b box) bounds {
			out, n := bounds{lo: math.Inf(1), hi: math.Inf(-1)}, 0
			var last uint8
			r.each(b, func(c uint8) bool {
				if n == 0 || c != last {
					n++
					out.lo, out.hi = min(out.lo, of[c]), max(out.hi, of[c])
				}
				last = c
				return true
			})
			out.jumps = n > 1
			return out
		},
	})
}

// over returns n with the values of the chosen colours where they touch a place.
func (r *raster) over(n node, chosen []bool, of []float64) node {
	out := r.node(node{indexed: n.indexed,
		spot: func(s *spot) float64 {
			c, ok := r.last(s, chosen)
			if s.decide(truth(ok)*float64(1+c)) != 0 {
				return of[c]
			}
			return n.spot(s)
		},
		limit: func(b box) bounds { return anything(true) }, // only its values are of use
	})
	out.onY = n.onY
	return out
}

// node completes a node whose values in rows of points are those at their places.
func (r *grid[T]) node(n node) node {
	n.onX, n.drawn = true, r
	n.eval = func(s *span, dst []float64) {
		for i := range dst {
			dst[i] = n.spot(&spot{x: float64(s.col + i), y: float64(s.row)})
		}
	}
	return n
}

// repeats reports whether the pixels around row iy of the mesh are known to be those around row iy-1: as far as faces
// reach that say which points lie outside the material.
func (r *grid[T]) repeats(iy int) bool {
	first, last := r.down.touched(float64(iy-3), float64(iy+2), r.height)
	return first >= 0 && last < r.height && r.firsts[first] == r.firsts[last]
}
