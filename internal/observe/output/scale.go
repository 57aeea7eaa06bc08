package output

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The longer side of the mesh in a picture has between about minPixels and maxPixels pixels. It is at most maxAspect
// times the shorter side, so that a very wide or very tall mesh remains visible.
const (
	minPixels = 800
	maxPixels = 1280
	maxAspect = 8
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

func newScale(g grid) scale {
	wide, high := float64(g.nx)*g.hx, float64(g.ny)*g.hy
	if g.nx > g.ny || g.nx == g.ny && wide >= high {
		x := fitted(g.nx, wide/high)
		return scale{x, across(x, g.nx, g.ny, high/wide, g.hx == g.hy)}
	}
	y := fitted(g.ny, high/wide)
	return scale{across(y, g.ny, g.nx, wide/high, g.hx == g.hy), y}
}

// fitted returns the axis of the side with more points, n, with whole pixels for each cell. The longer side, which is
// this one if ratio, its length over that of the other one, is at least 1, takes about minPixels to maxPixels.
func fitted(n int, ratio float64) axis {
	part := min(1, max(ratio, 1./maxAspect))
	least, most := int(math.Ceil(minPixels*part)), int(maxPixels*part)
	if n > most {
		return axis{(n + most - 1) / most, 1}
	}
	return axis{1, float64(max(1, min((least+n-1)/n, most/n)))}
}

// across returns the axis of the side of n points across the axis a of the side of m points; its length is ratio times
// that of the other one.
func across(a axis, m, n int, ratio float64, equal bool) axis {
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

// Ticks returns round values from lo to hi, about n steps at most, and labels of equal precision.
func Ticks(lo, hi float64, n int) (values []float64, labels []string) {
	return ticksOf(lo, hi, roundStep((hi/2-lo/2)/float64(n)*2), n+1) // hi-lo may overflow
}

// ticksOf returns the multiples of step from lo to hi, at most that number, and labels of equal precision.
func ticksOf(lo, hi, step float64, most int) (values []float64, labels []string) {
	const slack = 5e-3 // of a step, less than a pixel: a bar to 0.99999 has a tick at 1
	for i := math.Ceil(lo/step - slack); i*step-hi <= step*slack && len(values) < most; i++ {
		values = append(values, i*step)
	}
	largest := math.Max(math.Abs(lo), math.Abs(hi))
	format, digits := byte('f'), -decade(step)
	if largest >= 1e5 || largest < 1e-3 {
		format, digits = 'e', decade(largest)-decade(step)
	}
	for _, v := range values {
		labels = append(labels, label(v, format, max(digits, 0)))
	}
	return values, labels
}

const minus = "\u2212" // as wide as a plus

func label(v float64, format byte, digits int) string {
	if v == 0 {
		return "0"
	}
	s := strconv.FormatFloat(math.Abs(v), format, digits, 64)
	if v < 0 {
		return minus + s
	}
	return s
}

// decade returns the largest e with 10^e <= v, with some tolerance for rounding.
func decade(v float64) int { return int(math.Floor(math.Log10(v) + 1e-9)) }

// roundStep returns the smallest of 1, 2 and 5 times a power of ten that is at least step.
func roundStep(step float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= step*(1-1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

// barSlack is how far a tick may lie beyond the end of the bar, as a fraction of the bar: less than a pixel. Such a
// tick is drawn at the end.
const barSlack = 5e-4

// ticks returns about n round values on the bar, and their labels.
func (s colourScale) ticks(n int) (values []float64, labels []string) {
	if s.kind == ScaleLinear {
		return Ticks(s.min, s.max, n)
	}
	for _, d := range s.roundDistances(1 / (1.5 * float64(n))) {
		values, labels = append(values, s.centre+d), append(labels, s.label(d))
		if d > 0 && s.diverging {
			values, labels = append(values, s.centre-d), append(labels, s.label(-d))
		}
	}
	return values, labels
}

// roundDistances returns 0 and round distances from the centre. No two are closer than gap on the bar. The distances
// are negative on a scale whose values lie mostly below the centre.
func (s colourScale) roundDistances(gap float64) []float64 {
	far, sign := s.max-s.centre, 1.0
	if s.centre-s.min > far {
		far, sign = s.centre-s.min, -1
	}
	steps := []float64{1}
	if s.kind == ScaleSqrt {
		steps = []float64{5, 2, 1}
	}
	list, zero, last := []float64{0}, s.at(s.centre), math.Inf(1)
	limit := far * (1 + barSlack)
	for e := decade(limit); ; e-- {
		for _, m := range steps {
			d := m * math.Pow(10, float64(e))
			if d > limit {
				continue
			}
			at := math.Abs(s.at(s.centre+sign*d) - zero)
			if at < gap*(1-1e-6) {
				return list
			}
			if last-at >= gap*(1-1e-6) {
				list, last = append(list, sign*d), at
			}
		}
	}
}

// label returns the label of the tick at distance d from the centre: the value, or "centre + d" where six digits do not
// tell the value from the centre.
func (s colourScale) label(d float64) string {
	format, digits, size := byte('e'), 0, math.Abs(d)
	if size >= 1e-3*(1-1e-6) && size < 1e5 {
		format, digits = 'f', max(0, -decade(size))
	}
	if s.centre == 0 {
		return label(d, format, digits)
	}
	short := func(v float64) string { return strings.Replace(fmt.Sprintf("%.6g", v), "-", minus, 1) }
	if d == 0 || size > 0.9e-4*math.Abs(s.centre) {
		return short(s.centre + d)
	}
	sign := "+"
	if d < 0 {
		sign = minus
	}
	return short(s.centre) + " " + sign + " " + label(size, format, digits)
}
