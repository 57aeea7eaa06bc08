package output

import (
	"fmt"
	"math"
)

// The longer side of the mesh in a picture has between about minPixels and maxPixels pixels. It is at most maxAspect
// times the shorter side, so that a very wide or very tall mesh remains visible.
const (
	minPixels = 800
	maxPixels = 1280
	maxAspect = 8
	// The cells along the longer side of a frame of an animation, which is as large as a picture.
	minFrameCells = 250
	maxFrameCells = 400
)

// axis maps the points along one side of a mesh to pixels.
type axis struct {
	points int     // in one cell along that side; the last cell may have fewer
	pixels float64 // of one cell
}

// cells returns the number of cells along a side of n points.
func (a axis) cells(n int) int { return (n + a.points - 1) / a.points }

// length returns the length in pixels of a side of n points.
func (a axis) length(n int) int { return int(math.Round(float64(a.cells(n)) * a.pixels)) }

// cell returns the cell, of n, in which the middle of a pixel lies.
func (a axis) cell(pixel, n int) int { return min(int((float64(pixel)+0.5)/a.pixels), n-1) }

// perPoint returns the pixels from one point to the next.
func (a axis) perPoint() float64 { return a.pixels / float64(a.points) }

// pixel returns the pixel of a place i points from the first one of n.
func (a axis) pixel(i float64, n int) int { return min(int((i+0.5)*a.perPoint()), a.length(n)-1) }

// scale maps a mesh to a picture. Lengths have the same scale in both directions unless the ratio of the mesh's sides
// exceeds maxAspect.
type scale struct{ x, y axis }

// grid is a mesh of points with spacings in which a picture is to scale.
type grid struct {
	nx, ny int
	hx, hy float64
}

func newScale(g grid) scale { return newScaleIn(g, minPixels, maxPixels) }

// newFrameScale returns a scale of as many pixels with fewer cells.
func newFrameScale(g grid) scale {
	s, p := newScaleIn(g, minFrameCells, maxFrameCells), newScale(g)
	s.x.pixels = float64(p.x.length(g.nx)) / float64(s.x.cells(g.nx))
	s.y.pixels = float64(p.y.length(g.ny)) / float64(s.y.cells(g.ny))
	return s
}

// newScaleIn is newScale for a longer side of about least to most pixels.
func newScaleIn(g grid, least, most int) scale {
	wide, high := float64(g.nx)*g.hx, float64(g.ny)*g.hy
	if g.nx > g.ny || g.nx == g.ny && wide >= high {
		x := fitted(g.nx, least, most, wide/high)
		return scale{x, beside(x, g.nx, g.ny, high/wide, g.hx == g.hy)}
	}
	y := fitted(g.ny, least, most, high/wide)
	return scale{beside(y, g.ny, g.nx, wide/high, g.hx == g.hy), y}
}

// fitted returns the axis of the side with more points, n, with whole pixels for each cell. The longer side, which is
// this one if ratio, its length over that of the other one, is at least 1, takes about least to most pixels.
func fitted(n, least, most int, ratio float64) axis {
	part := min(1, max(ratio, 1./maxAspect))
	least, most = int(math.Ceil(float64(least)*part)), int(float64(most)*part)
	if n > most {
		return axis{(n + most - 1) / most, 1}
	}
	return axis{1, float64(max(1, min((least+n-1)/n, most/n)))}
}

// beside returns the axis of the side of n points beside the axis a of the side of m points; its length is ratio times
// that of the other one.
func beside(a axis, m, n int, ratio float64, equal bool) axis {
	long := a.length(m)
	if ratio < 1./maxAspect {
		return stretched(n, long/maxAspect)
	}
	if equal {
		return a
	}
	pixels := int(math.Round(float64(long) * min(ratio, maxAspect)))
	b := axis{(n + pixels - 1) / pixels, 0}
	b.pixels = float64(pixels) / float64(b.cells(n))
	return b
}

// stretched returns the axis on which n points take at least this many pixels and less than twice as many.
func stretched(n, pixels int) axis {
	if n >= pixels {
		return axis{n / pixels, 1}
	}
	return axis{1, float64((pixels + n - 1) / n)}
}

// caption says how far lengths along y are stretched against those along x, or the other way round; "" if they are not.
func (s scale) caption(g grid) string {
	stretch := s.y.perPoint() / g.hy / (s.x.perPoint() / g.hx)
	side := "y"
	if stretch < 1 {
		side, stretch = "x", 1/stretch
	}
	if stretch < 1.05 {
		return ""
	}
	return fmt.Sprintf("not to scale: %s stretched %.3g times", side, stretch)
}
