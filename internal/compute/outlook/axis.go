package outlook

import (
	"math"

	"jacobi/solver"
)

// axis is one direction of the mesh and its modes. Points are counted as in the mesh, from 0 at the wall.
type axis struct {
	lo, hi int            // the first and the last point that a sweep updates
	walls  [2]solver.Wall // before lo and after hi
	size   float64        // number of points, where those of Neumann walls count half
	weight float64        // of the neighbours along the axis in a sweep: h (1-q) or h q
	at     []int          // sampled points
	waves  []wave
}

// wave is a mode along one axis.
type wave struct {
	cosine float64                 // the axis contributes 2 weight times it to 1-lambda
	square float64                 // mean square
	at     func(point int) float64 // value at a point
}

// newAxis returns the axis of n points between two walls. The iteration is symmetric in the inner product in which
// points of Neumann walls count half, and so the modes are orthogonal in it: sines between fixed walls, cosines between
// Neumann walls, quarter waves between one of each, and whole waves without ends.
func newAxis(n int, before, after solver.Wall, weight float64) axis {
	a := axis{lo: 1, hi: n - 2, walls: [2]solver.Wall{before, after}, weight: weight}
	if before == solver.Neumann {
		a.lo = 0
	}
	if after == solver.Neumann {
		a.hi = n - 1
	}
	a.size = float64(a.points()) - a.half(0) - a.half(1)
	a.at = spread(a.lo, a.hi)
	switch {
	case before == solver.Periodic:
		a.addWhole()
		return a
	case before == solver.Neumann && after == solver.Neumann:
		a.add(1, 1, 0, math.Cos) // the constant
	}
	for p := 1; p <= min(waves, a.points()); p++ {
		a.addWave(p, n-1)
	}
	return a
}

// points returns the number of points that a sweep updates.
func (a axis) points() int { return a.hi - a.lo + 1 }

// half returns the part of the point at an end by which it counts less than others.
func (a axis) half(end int) float64 {
	if a.walls[end] == solver.Neumann {
		return 0.5
	}
	return 0
}

// addWave adds the p-th wave, from 1, between walls with the given number of spacings between them.
func (a *axis) addWave(p, spacings int) {
	full := float64(p) * math.Pi / float64(spacings)
	quarter := (float64(p) - 0.5) * math.Pi / float64(spacings)
	square := float64(spacings) / 2 / a.size
	switch before, after := a.walls[0] == solver.Neumann, a.walls[1] == solver.Neumann; {
	case before && after:
		if p == spacings { // the chessboard, which is the partner of the constant
			return
		}
		a.add(math.Cos(full), square, full, math.Cos)
	case before:
		a.add(math.Cos(quarter), square, quarter, math.Cos)
	case after:
		a.add(math.Cos(quarter), square, quarter, math.Sin)
	default:
		a.add(math.Cos(full), square, full, math.Sin)
	}
}

func (a *axis) add(cosine, square, angle float64, f func(float64) float64) {
	a.waves = append(a.waves, wave{cosine, square, func(i int) float64 { return f(angle * float64(i)) }})
}

// addWhole adds a constant and the sines and cosines of whole waves.
func (a *axis) addWhole() {
	a.add(1, 1, 0, math.Cos)
	n := a.points()
	step := 2 * math.Pi / float64(n)
	for q := 1; q <= min(waves, (n-1)/2); q++ {
		angle := float64(q) * step
		middle := float64(n+1) / 2 // sines are odd and cosines even about the middle of the samples
		a.waves = append(a.waves,
			wave{math.Cos(angle), 0.5, func(i int) float64 { return math.Sin(angle * (float64(i) - middle)) }},
			wave{math.Cos(angle), 0.5, func(i int) float64 { return math.Cos(angle * (float64(i) - middle)) }})
	}
}

// hasPartners reports whether the signs of a chessboard fit the axis.
func (a axis) hasPartners() bool { return a.walls[0] != solver.Periodic || a.points()%2 == 0 }

// early returns the number of sweeps in which a mode of one half wave more than those of the axis shrinks by a factor
// of e; 0 if the axis has all modes.
func (a axis) early() float64 {
	n := a.points() + 2 - int(2*(a.half(0)+a.half(1)))
	if n <= waves+3 {
		return 0
	}
	return 1 / (2 * a.weight * (1 - math.Cos((waves+1)*math.Pi/float64(n-1))))
}

// spread returns at most samples of the numbers lo to hi. They are evenly spread and symmetric about the middle, so
// that the means of odd functions are 0.
func spread(lo, hi int) []int {
	n := hi - lo + 1
	count := min(n, samples)
	list := make([]int, count)
	for i := range (count + 1) / 2 {
		step := int((float64(i) + 0.5) * float64(n) / float64(count))
		list[i], list[count-1-i] = lo+step, hi-step
	}
	return list
}

// mean returns the mean of values times w over the samples of a, where points of Neumann walls count half.
func (a axis) mean(values []float64, w wave) float64 {
	var sum, size float64
	for i, v := range values {
		part := 1.0
		switch a.at[i] {
		case a.lo:
			part -= a.half(0)
		case a.hi:
			part -= a.half(1)
		}
		sum += part * v * w.at(a.at[i])
		size += part
	}
	return sum / size
}

// alternating returns the mean of values times w with signs that alternate from point to point, as those of a
// chessboard. For smooth values only the ends contribute: half of the product half a step before the first point, and
// half a step after the last one; nothing at a Neumann wall, whose point counts half.
func (a axis) alternating(e ends, w wave) float64 {
	first := 1.5*e[0]*w.at(a.lo) - 0.5*e[1]*w.at(a.lo+1)
	last := 1.5*e[3]*w.at(a.hi) - 0.5*e[2]*w.at(a.hi-1)
	first *= chess(a.lo) * (1 - 2*a.half(0))
	last *= chess(a.hi) * (1 - 2*a.half(1))
	return (first + last) / (2 * a.size)
}

// chess returns the sign of the chessboard at a point of an axis.
func chess(point int) float64 {
	if point%2 == 0 {
		return 1
	}
	return -1
}
