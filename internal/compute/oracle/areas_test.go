package oracle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/problem"
	"jacobi/solver"
)

// scenes is the number of random problems whose areas have edges; ORACLE and ORACLE_SEED say as for TestRandomProblems.
const scenes = 40

// The equations of problems with discs, rectangles and half-planes are those of docs/numerics.md, worked out here by
// dense sampling: faces from the lanes of their strips, sources and screenings from squares, walls from their parts.
// They differ by what a rule of 8 lanes leaves open: a part of how much lanes differ, and what reaches in between two.
func TestEdgesOfRandomAreas(t *testing.T) {
	t.Parallel()
	first, count := seeds(t, scenes)
	compared := 0
	for i := range count + (count+1)/2 {
		s := newScene(first + i%count)
		if i >= count {
			s.addThin()
		}
		p, err := problem.New(t.Context(), s.config())
		if err == nil {
			err = p.Check(t.Context())
		}
		if err != nil {
			if text := err.Error(); !strings.Contains(text, "any constant") && !strings.Contains(text, "it fixes all") {
				t.Errorf("seed %d: %v\n\t%s", s.seed, err, s)
			}
			continue
		}
		if p.Weighted() {
			compared++
			s.compare(t, p)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if compared < int(count)*3/4 {
		t.Errorf("%d of %d problems are compared", compared, count+(count+1)/2)
	}
}

// shape is a convex area of the plane: where all of its functions are below 0. Along a line these are linear, or, for a
// disc, the only one is convex.
type shape struct {
	text string
	has  func(x, y float64) bool
	sign []func(x, y float64) float64
	disc bool
}

// span returns the part of a line from one place to another that lies in the shape, as parts of its length.
func (s shape) span(x, y, toX, toY float64) (from, to float64) {
	to = 1
	for _, f := range s.sign {
		at := func(t float64) float64 { return f(x+t*(toX-x), y+t*(toY-y)) }
		if a, b := at(0), at(1); s.disc { // a + p t + q t^2, as its square is
			q := 2*a + 2*b - 4*at(0.5)
			p := b - a - q
			root := math.Sqrt(p*p - 4*q*a) // NaN for none
			from, to = max(from, (-p-root)/(2*q)), min(to, (root-p)/(2*q))
		} else if a >= 0 && b >= 0 {
			return 1, 0
		} else if a > 0 {
			from = max(from, a/(a-b))
		} else if b > 0 {
			to = min(to, a/(a-b))
		}
	}
	return from, to
}

// patches are values by area: that of the first one that has a place, or else the last one.
type patches struct {
	shapes []shape
	values []float64
}

func (p patches) at(x, y float64) float64 {
	for i, s := range p.shapes {
		if s.has(x, y) {
			return p.values[i]
		}
	}
	return p.values[len(p.shapes)]
}

func (p patches) String() string {
	text := ""
	for i, s := range p.shapes {
		text += fmt.Sprintf("%s ? %v : ", s.text, p.values[i])
	}
	return text + fmt.Sprint(p.values[len(p.shapes)])
}

// scene is a random problem with areas.
type scene struct {
	seed                           uint64
	nx, ny                         int
	height                         float64
	walls                          solver.Walls
	sides                          [4]string
	h, g                           [4]patches // of Robin and Neumann walls; h without values for Neumann
	fixed                          patches    // 1 where an area is fixed
	coefficient, source, screening patches
	hx, hy                         float64
	axis                           string
}

func newScene(seed uint64) *scene {
	r := rand.New(rand.NewPCG(seed, 3))
	s := &scene{seed: seed, nx: 7 + r.IntN(14), ny: 7 + r.IntN(14), height: math.Exp(1.4*r.Float64() - 0.7)}
	chance := func(p float64) bool { return r.Float64() < p }
	some := func(number int, value func() float64) (p patches) {
		for range number {
			p.shapes, p.values = append(p.shapes, randomShape(r)), append(p.values, value())
		}
		p.values = append(p.values, value())
		return p
	}
	s.walls.Left, s.walls.Top = solver.Dirichlet, solver.Dirichlet
	for axis := range 2 {
		periodic := chance(0.25)
		for i := 2 * axis; i < 2*axis+2; i++ {
			wall := solver.Dirichlet
			s.g[i] = some(r.IntN(2), func() float64 { return math.Round(20*r.Float64()) - 10 })
			switch kind := r.IntN(3); {
			case periodic:
				wall, s.sides[i] = solver.Periodic, "periodic"
			case kind == 0:
				s.sides[i] = fmt.Sprint(r.IntN(3))
			case kind == 1:
				wall, s.sides[i] = solver.Neumann, fmt.Sprintf("neumann(%s)", s.g[i])
			default:
				s.h[i] = some(r.IntN(2), func() float64 { return math.Round(9 * r.Float64()) })
				wall, s.sides[i] = solver.Neumann, fmt.Sprintf("robin(%s, %s)", s.h[i], s.g[i])
			}
			*s.wall(i) = wall
		}
	}
	if axis := int(seed % 12); axis < 4 && *s.wall(axis) != solver.Periodic {
		*s.wall(axis), s.axis, s.sides[axis] = solver.Neumann, sideNames[axis], "neumann(0)"
		s.h[axis], s.g[axis] = patches{}, patches{values: []float64{0}}
	}
	s.hx = 1 / float64(solver.Intervals(s.nx, s.walls.Left))
	s.hy = s.height / float64(solver.Intervals(s.ny, s.walls.Top))
	s.fixed = some(r.IntN(3), func() float64 { return 1 })
	s.fixed.values[len(s.fixed.shapes)] = 0
	s.coefficient = some(r.IntN(4), func() float64 {
		return []float64{0, 0.1, 1, 3, 50}[r.IntN(5)]
	})
	if last := &s.coefficient.values[len(s.coefficient.shapes)]; *last == 0 {
		*last = 1
	}
	s.source = some(r.IntN(3), func() float64 { return math.Round(100*r.Float64()) - 50 })
	s.screening = some(r.IntN(3), func() float64 { return math.Round(100 * r.Float64()) })
	return s
}

var sideNames = []string{"left", "right", "top", "bottom"}

func (s *scene) wall(i int) *solver.Wall {
	return []*solver.Wall{&s.walls.Left, &s.walls.Right, &s.walls.Top, &s.walls.Bottom}[i]
}

// radius returns the distance of a place from the axis; 1 without one.
func (s *scene) radius(across, down float64) float64 {
	switch s.axis {
	case "left":
		return across * s.hx
	case "right":
		return (float64(s.nx-1) - across) * s.hx
	case "top":
		return down * s.hy
	case "bottom":
		return (float64(s.ny-1) - down) * s.hy
	}
	return 1
}

// randomShape returns a disc, a rectangle or a half-plane.
func randomShape(r *rand.Rand) shape {
	number := func(from, to float64) float64 { return math.Round(1e4*(from+(to-from)*r.Float64())) / 1e4 }
	a, b := number(0.1, 0.9), number(0.1, 0.9)
	switch r.IntN(3) {
	case 0:
		radius := number(0.15, 0.45)
		return shape{fmt.Sprintf("hypot(x-%v, y-%v) < %v", a, b, radius), func(x, y float64) bool {
			return math.Hypot(x-a, y-b) < radius
		}, []func(x, y float64) float64{func(x, y float64) float64 {
			return (x-a)*(x-a) + (y-b)*(y-b) - radius*radius
		}}, true}
	case 1:
		w, h := number(0.1, 0.4), number(0.1, 0.4)
		return shape{fmt.Sprintf("abs(x-%v) < %v and abs(y-%v) < %v", a, w, b, h), func(x, y float64) bool {
			return math.Abs(x-a) < w && math.Abs(y-b) < h
		}, []func(x, y float64) float64{func(x, _ float64) float64 { return x - a - w },
			func(x, _ float64) float64 { return a - x - w }, func(_, y float64) float64 { return y - b - h },
			func(_, y float64) float64 { return b - y - h }}, false}
	}
	c, d := number(-1, 1), number(-1, 1)
	return shape{fmt.Sprintf("%v*(x-%v)+%v*(y-%v) < 0", c, a, d, b), func(x, y float64) bool {
		return float64(c*(x-a))+float64(d*(y-b)) < 0
	}, []func(x, y float64) float64{func(x, y float64) float64 { return c*(x-a) + d*(y-b) }}, false}
}

// addThin fixes some plates, too.
func (s *scene) addThin() {
	r := rand.New(rand.NewPCG(s.seed, 4))
	number := func(from, to float64) float64 { return math.Round(1e4*(from+(to-from)*r.Float64())) / 1e4 }
	free := s.fixed.values[len(s.fixed.shapes)]
	s.fixed.values = s.fixed.values[:len(s.fixed.shapes)]
	for range 1 + r.IntN(3) {
		a, b, c, d, half := number(0.1, 0.9), number(0.1, 0.9), number(-1, 1), number(-1, 1), number(0.1, 0.4)
		switch r.IntN(3) {
		case 0:
			c = 0
		case 1:
			d = 0
		}
		thick := math.Pow(10, -1.5-6*r.Float64()) * math.Hypot(c, d)
		across := func(x, y float64) float64 { return c*(x-a) + d*(y-b) }
		s.fixed.shapes = append(s.fixed.shapes, shape{fmt.Sprintf("abs(%v*(x-%v)+%v*(y-%v)) < %v and "+
			"abs(x-%v) < %v and abs(y-%v) < %v", c, a, d, b, thick, a, half, b, half), func(x, y float64) bool {
			return math.Abs(across(x, y)) < thick && math.Abs(x-a) < half && math.Abs(y-b) < half
		}, []func(x, y float64) float64{func(x, y float64) float64 { return across(x, y) - thick },
			func(x, y float64) float64 { return -across(x, y) - thick },
			func(x, _ float64) float64 { return x - a - half }, func(x, _ float64) float64 { return a - x - half },
			func(_, y float64) float64 { return y - b - half },
			func(_, y float64) float64 { return b - y - half }}, false})
		s.fixed.values = append(s.fixed.values, 1)
	}
	s.fixed.values = append(s.fixed.values, free)
}

// start is problem.initial, of which the values at the edges of fixed areas count.
func start(x, y float64) float64 { return 1 + 2*x - 3*y*y }

func (s *scene) config() configs.Config {
	c := configs.Default()
	c.Grid = configs.Grid{NX: s.nx, NY: s.ny, DType: "float64", Width: 1, Height: s.height, Axis: s.axis}
	fixed := "false"
	if len(s.fixed.shapes) > 0 {
		fixed = "(" + s.fixed.String() + ") > 0.5"
	}
	c.Problem = configs.Problem{Preset: "dirichlet", Left: s.sides[0], Right: s.sides[1], Top: s.sides[2],
		Bottom: s.sides[3], Initial: "1 + 2*x - 3*y*y", Fixed: fixed, Coefficient: s.coefficient.String(),
		Source: s.source.String(), Screening: s.screening.String()}
	return c
}

func (s *scene) String() string { return fmt.Sprintf("%+v %+v", s.config().Grid, s.config().Problem) }

// place returns x and y of a place of the plane that is measured in points.
func (s *scene) place(across, down float64) (x, y float64) {
	at := func(v float64, n int, w solver.Wall) float64 {
		m := float64(solver.Intervals(n, w))
		if w == solver.Periodic && v > m {
			v -= m
		}
		return v / m
	}
	return at(across, s.nx, s.walls.Left), at(down, s.ny, s.walls.Top)
}

// of returns a value at a place of the plane, along x and across it, or else along y.
func (s *scene) of(p patches, x bool, along, across float64) float64 {
	if !x {
		along, across = across, along
	}
	return p.at(s.place(along, across))
}

// stretch is a part of a line with one value.
type stretch struct{ middle, length, value float64 }

// stretches follows a value from one place to another.
func stretches(from, to float64, value func(at float64) float64) (list []stretch) {
	const parts = 160
	begin, last := from, value(from+(to-from)*1e-9)
	for i := 1; i <= parts; i++ {
		at := from + (to-from)*float64(i)/parts
		if i == parts {
			at -= (to - from) * 1e-9
		}
		next := value(at)
		if next == last {
			continue
		}
		lo, hi := from+(to-from)*(float64(i)-1)/parts, at
		for range 45 {
			if middle := (lo + hi) / 2; value(middle) == last {
				lo = middle
			} else {
				hi = middle
			}
		}
		list = append(list, stretch{(begin + hi) / 2, hi - begin, last})
		begin, last = hi, next
	}
	return append(list, stretch{(begin + to) / 2, to - begin, last})
}

// average returns the mean of f from low to high, and how much f over r varies.
func average(low, high float64, f, r func(at float64) float64) (mean, varies float64) {
	const lanes = 160
	before := 0.0
	for i := range lanes {
		at := low + (high-low)*(float64(i)+0.5)/lanes
		v := f(at)
		mean += v / lanes
		v /= r(at)
		if i > 0 {
			varies += math.Abs(v - before)
		}
		before = v
	}
	return mean, varies
}

// reach returns what belongs to a point within the mesh.
func reach(i, n int, w solver.Wall) (from, to float64) {
	from, to = float64(i)-0.5, float64(i)+0.5
	if w != solver.Periodic {
		from, to = max(0, from), min(to, float64(n-1))
	}
	return from, to
}

// pin is what a fixed area between the points of a face is to one of them: the coefficient, by how much it may be off,
// and its value.
type pin struct{ c, off, u float64 }

// extent returns the first and the last part of the line from a point to the next one that is fixed, in parts of it;
// 1 and 0 for none.
func (s *scene) extent(ix, iy int, x bool) (first, last float64) {
	ends := [2][2]float64{}
	middle := [2]float64{float64(ix), float64(iy)}
	step := [2]float64{s.hx / 2, 0}
	if middle[0] += 0.5; !x {
		middle[0] -= 0.5
		middle[1] += 0.5
		step = [2]float64{0, s.hy / s.height / 2}
	}
	middle[0], middle[1] = s.place(middle[0], middle[1])
	for k := range 2 {
		ends[0][k], ends[1][k] = middle[k]-step[k], middle[k]+step[k]
	}
	first = 1
	for _, f := range s.fixed.shapes {
		if from, to := f.span(ends[0][0], ends[0][1], ends[1][0], ends[1][1]); from < to {
			first, last = min(first, from), max(last, to)
		}
	}
	return first, last
}

// face returns the coefficient, times the distance from the axis, of the face from a point to the next column or else
// row, by how much it may be off, and what its lift adds to the step, as it is seen from the free point; or what a
// fixed area between is to both.
func (s *scene) face(ix, iy int, x bool) (c, off, lift float64, pins [2]pin) {
	along, across := float64(ix), float64(iy)
	low, high := reach(iy, s.ny, s.walls.Top)
	if !x {
		along, across = across, along
		low, high = reach(ix, s.nx, s.walls.Left)
	}
	value := func(at float64) float64 {
		if x {
			return start(s.place(at, across))
		}
		return start(s.place(across, at))
	}
	before, _ := reach(ix, s.nx, s.walls.Left)
	_, after := reach(ix+1, s.nx, s.walls.Left)
	if !x {
		before, _ = reach(iy, s.ny, s.walls.Top)
		_, after = reach(iy+1, s.ny, s.walls.Top)
	}
	radius := func(along, at float64) float64 {
		if x {
			return s.radius(along, at)
		}
		return s.radius(at, along)
	}
	mean := func(from, to, before, after float64) (c, off float64) {
		c, off = average(low, high, func(at float64) float64 {
			return conducts(from, to, before, after, func(along float64) float64 {
				return s.of(s.coefficient, x, along, at)
			}, func(along float64) float64 { return radius(along, at) })
		}, func(at float64) float64 { return radius((from+to)/2, at) })
		return c, off + slices.Max(s.coefficient.values)/16 // what reaches in between two lanes
	}
	from, to, part := along, along+1, 1.0
	first, second := s.of(s.fixed, x, from, across) > 0, s.of(s.fixed, x, to, across) > 0
	if first && second {
		return 0, 0, 0, pins
	}
	begin, end := s.extent(ix, iy, x)
	nx, ny := ix+1, iy
	if !x {
		nx, ny = ix, iy+1
	}
	if !first && !second && begin < end && (s.inside(ix, iy) || s.inside(nx, ny)) {
		for i, free := range []float64{begin, 1 - end} {
			part, from, to, before, after := max(free, 0x1p-10), from, to, before, after
			if i == 0 {
				pins[i].u, to = value(along+begin+1e-9), from+part // beyond a seam, if it begins there
				after = to
			} else {
				pins[i].u, from = value(along+end), to-part
				before = from
			}
			c, off := mean(from, to, before, after)
			pins[i].c, pins[i].off = c/part, off/part
		}
		return 0, 0, 0, pins
	}
	if first != second {
		free := begin
		if first {
			free = 1 - end
		}
		part = max(free, 0x1p-10)
		point, edge := to, from+free
		if to = from + part; first {
			point, edge, from, to = from, along+1-free, along+1-part, along+1
		}
		const within = 1e-6 // of the area, as problem.initial may jump at its edge, too
		if first {
			edge = max(edge-within, point)
		} else {
			edge = min(edge+within, point)
		}
		lift = value(edge) - value(point)
		if wall := s.wallBehind(ix, iy, x, second); wall {
			lift = 0
		}
	}
	if first {
		before = from
	} else if second {
		after = to
	}
	c, off = mean(from, to, before, after)
	return c / part, off / part, lift, pins
}

// conducts returns the coefficient of a lane times r, in which a hole may leave the middle open.
func conducts(from, to, before, after float64, value, r func(along float64) float64) float64 {
	resistance := 0.0
	for _, l := range stretches(from, to, value) {
		resistance += l.length / l.value // infinite for a hole
	}
	if !math.IsInf(resistance, 1) {
		return (to - from) / resistance * r((from+to)/2)
	}
	middle := (from + to) / 2
	if value(middle) == 0 {
		return 0
	}
	// grows follows the material from the middle towards a point: how far it reaches, its resistance, and whether there
	// is material again beyond a hole before the point, up to the end.
	grows := func(point, end float64) (reached, resistance float64, parted bool) {
		sign, reached := 1.0, middle
		if end < middle {
			sign = -1
		}
		hole := false
		for _, l := range stretches(0, math.Abs(end-middle), func(d float64) float64 {
			return value(middle + sign*d)
		}) {
			switch part := min(l.length, max(0, sign*(point-reached))); {
			case l.value == 0:
				hole = hole || sign*(point-reached) > 1e-9
			case hole:
				parted = true
			default:
				resistance += part / l.value
				reached += sign * part
			}
		}
		return reached, resistance, parted
	}
	end, one, parted := grows(to, after)
	begin, other, alsoParted := grows(from, before)
	if parted || alsoParted {
		return 0
	}
	return (end - begin) / (one + other) * r((from+to)/2)
}

// wallBehind reports whether the fixed point of a face, its second or else its first, is one of a fixed wall.
func (s *scene) wallBehind(ix, iy int, x, second bool) bool {
	if second && x {
		ix++
	} else if second {
		iy++
	}
	return !s.inside(ix, iy)
}

// inside reports whether a point is none of a fixed wall.
func (s *scene) inside(ix, iy int) bool {
	w := s.walls
	return !(ix == 0 && w.Left == solver.Dirichlet || ix == s.nx-1 && w.Right == solver.Dirichlet ||
		iy == 0 && w.Top == solver.Dirichlet || iy == s.ny-1 && w.Bottom == solver.Dirichlet)
}

// free returns a value at a place, or 0 where an area is fixed or has no material.
func (s *scene) free(p patches, x, y float64) float64 {
	if s.fixed.at(x, y) > 0 || s.coefficient.at(x, y) == 0 {
		return 0
	}
	return p.at(x, y)
}

// square returns the mean of a value times the distance from the axis over the free part of the square of a point, and
// by how much it may be off.
func (s *scene) square(p patches, ix, iy int) (mean, off float64) {
	left, right := reach(ix, s.nx, s.walls.Left)
	top, bottom := reach(iy, s.ny, s.walls.Top)
	return average(top, bottom, func(down float64) (mean float64) {
		for _, l := range stretches(left, right, func(across float64) float64 {
			x, y := s.place(across, down)
			return s.free(p, x, y)
		}) {
			mean += l.length * l.value / (right - left) * s.radius(l.middle, down)
		}
		return mean
	}, func(down float64) float64 { return s.radius((left+right)/2, down) })
}

// alongWall returns the mean of a value times the distance from the axis over the free part of a wall around a point.
func (s *scene) alongWall(value func(x, y float64) float64, wall, ix, iy int) (mean float64) {
	from, to := reach(ix, s.nx, s.walls.Left)
	at := func(v float64) (x, y float64) { return s.place(v, float64(iy)) }
	if wall < 2 {
		from, to = reach(iy, s.ny, s.walls.Top)
		at = func(v float64) (x, y float64) { return s.place(float64(ix), v) }
	}
	for _, l := range stretches(from, to, func(v float64) float64 { return value(at(v)) }) {
		r := s.radius(l.middle, float64(iy))
		if wall < 2 {
			r = s.radius(float64(ix), l.middle)
		}
		mean += l.length * l.value / (to - from) * r
	}
	return mean
}

// compare compares the equations of a problem.
func (s *scene) compare(t *testing.T, p *problem.Problem) {
	m := p.Mesh()
	maxima, err := p.Maxima(t.Context(), 0, m.NY)
	if err != nil {
		t.Errorf("seed %d: %v\n\t%s", s.seed, err, s)
		return
	}
	p.SetMaxima(maxima)
	_, unit := math.Frexp(maxima.Diagonal)
	rows := map[solver.Value][][]float64{}
	for _, k := range []solver.Value{solver.Source, solver.Diagonal, solver.EastFace, solver.SouthFace} {
		for iy := range m.NY {
			raw, values := make([]byte, 8*m.NX), make([]float64, m.NX)
			if err := p.ValueRow(iy, k, raw); err != nil {
				t.Fatalf("seed %d: %v", s.seed, err)
			}
			solver.Float64.Decode(values, raw)
			rows[k] = append(rows[k], values)
		}
	}
	half := func(i, n int, before, after solver.Wall) float64 {
		if i == 0 && before == solver.Neumann || i == n-1 && after == solver.Neumann {
			return 0.5
		}
		return 1
	}
	w := s.walls
	scale := math.Ldexp(1, unit) / (s.hx * s.hy)
	wrong := 0
	check := func(what string, ix, iy int, got, want, off float64) {
		if math.Abs(got-want) > off+1e-6*(math.Abs(want)+1) {
			if wrong++; wrong <= 4 {
				t.Errorf("seed %d: %s of column %d, row %d: %.9g, want %.9g within %.2g\n\t%s", s.seed, what,
					ix, iy, got, want, off, s)
			}
		}
	}
	const open = 0.08 // the part of how much lanes vary by which the mean may be off
	lo, hi := m.InteriorColumns()
	interior := m.Interior()
	for iy := interior.Lo; iy < interior.Hi; iy++ {
		for ix := lo; ix < hi; ix++ {
			x, y := s.place(float64(ix), float64(iy))
			if s.fixed.at(x, y) > 0 {
				continue
			}
			total, slack, b := 0.0, 0.0, 0.0
			across, down := half(ix, m.NX, w.Left, w.Right), half(iy, m.NY, w.Top, w.Bottom)
			add := func(fx, fy int, along bool) {
				c, off, lift, pins := s.face(fx, fy, along)
				h, k, part, what := s.hy, solver.SouthFace, across, "south face"
				if along {
					h, k, part, what = s.hx, solver.EastFace, down, "east face"
				}
				c, off = c/(h*h), off*open/(h*h)
				check(what, fx, fy, rows[k][fy][fx]*scale/part, c, off)
				total, slack = total+c, slack+off
				b += rows[k][fy][fx] * scale / part * lift
				mine := pins[0]
				if fx != ix || fy != iy {
					mine = pins[1]
				}
				total, slack = total+mine.c/(h*h), slack+mine.off*open/(h*h)
				b += mine.c / (h * h) * mine.u
			}
			for _, f := range []struct {
				wall    bool // on which the mirrored face counts
				ix, iy  int
				mirrorX int
				mirrorY int
				x       bool
			}{{ix == 0, ix - 1, iy, ix, iy, true}, {ix == m.NX-1, ix, iy, ix - 1, iy, true},
				{iy == 0, ix, iy - 1, ix, iy, false}, {iy == m.NY-1, ix, iy, ix, iy - 1, false}} {
				if f.wall {
					f.ix, f.iy = f.mirrorX, f.mirrorY
				}
				if f.ix < lo && m.PeriodicColumns() {
					f.ix = hi - 1
				}
				if f.iy < interior.Lo && m.PeriodicRows() {
					f.iy = interior.Hi - 1
				}
				add(f.ix, f.iy, f.x)
			}
			if rows[solver.Diagonal][iy][ix] == 0 && total <= slack {
				continue // it lies outside the material
			}
			k2, offK := s.square(s.screening, ix, iy)
			f, offF := s.square(s.source, ix, iy)
			b += f
			for i, side := range []struct {
				on bool
				h  float64
			}{{ix == 0 && w.Left == solver.Neumann, s.hx}, {ix == m.NX-1 && w.Right == solver.Neumann, s.hx},
				{iy == 0 && w.Top == solver.Neumann, s.hy}, {iy == m.NY-1 && w.Bottom == solver.Neumann, s.hy}} {
				switch robin := len(s.h[i].values) > 0; {
				case !side.on:
				case robin:
					k2 += 2 / side.h * s.alongWall(func(x, y float64) float64 {
						return s.free(s.h[i], x, y)
					}, i, ix, iy)
					b += 2 / side.h * s.alongWall(func(x, y float64) float64 {
						return s.free(s.g[i], x, y)
					}, i, ix, iy)
				default:
					b += 2 / side.h * s.alongWall(func(x, y float64) float64 {
						return s.coefficient.at(x, y) * s.free(s.g[i], x, y)
					}, i, ix, iy)
				}
			}
			d := rows[solver.Diagonal][iy][ix] * scale / (across * down)
			check("diagonal", ix, iy, d, total+k2, slack+open*offK)
			check("right-hand side", ix, iy, rows[solver.Source][iy][ix]*d, b, 10*slack+open*offF+1e-5*total)
		}
	}
	if wrong > 4 {
		t.Errorf("seed %d: %d differences in all", s.seed, wrong)
	}
}
