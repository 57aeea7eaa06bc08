package leveltest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"jacobi/internal/compute/reference"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// WeightedCases returns the cases of weighted operators: walls of every kind, even and odd numbers of intervals,
// directions that are coarsened together, one after the other or not at all, and several ranks.
func WeightedCases() (cases []Case) {
	const periodic, neumann = solver.Periodic, solver.Neumann
	walls := []solver.Walls{
		{},
		{Top: periodic, Bottom: periodic},
		{Left: periodic, Right: periodic},
		{Left: periodic, Right: periodic, Top: periodic, Bottom: periodic},
		{Left: neumann, Bottom: neumann},
		{Left: neumann, Right: neumann, Top: neumann},
	}
	add := func(nx, ny int, w solver.Walls, ratio float64, fixed bool, ranks int) {
		i := len(cases)
		cases = append(cases, Case{Mesh: mesh(nx, ny, w), Operator: solver.Operator{Weighted: true, Ratio: ratio},
			Source: i%2 == 0, Fixed: fixed, Magnitude: solver.Magnitude([]int{0, 3, -40, 200}[i%4]), Ranks: ranks})
	}
	for i, w := range walls {
		for k, size := range [][2]int{{33, 33}, {100, 67}, {18, 70}, {131, 40}} {
			add(size[0], size[1], w, []float64{1, 0.2, 7}[(i+k)%3], (i+k)%2 == 1, 1)
		}
		add(61, 300+i, w, []float64{1, 0.3}[i%2], i%3 == 0, 2)
		add(62, 301+i, w, []float64{3, 1}[i%2], i%3 == 1, 3)
		add(45, 299+i, w, 1, i%3 == 2, 5)
	}
	for i, w := range walls[:4] {
		add(3+i, 3, w, 1, false, 1)
		add(5, 4+i, w, 1, false, 1)
	}
	add(17, 1000, walls[1], 1, true, 1) // coarsest levels of 9 x 1000 points
	add(1000, 17, walls[2], 1, false, 1)
	add(200, 150, walls[0], 1e-5, false, 2)
	return append(cases, loose(solver.Operator{Weighted: true, Ratio: 0.7})...)
}

// twice makes small levels do their cycles once, and smaller ones twice.
const twice = 200

// coefficients are the equations of a case with a coefficient of each point.
type coefficients struct {
	values
	centre, east, south []float64
	source              bool
}

// Weighted is the problem of a case of a weighted operator.
type Weighted struct {
	Mesh     solver.Mesh
	Operator solver.Operator // with all rows
	Initial  solver.RowSource
}

// NewWeighted returns the problem of a case, with coefficients between exp(-spread/2) and exp(spread/2).
func NewWeighted(c Case, spread float64) Weighted {
	v, op := newValues(c), c.Operator
	op.Values = newCoefficients(c, v, spread)
	if c.Fixed {
		op.Fixed = pattern{c.Mesh}
	}
	return Weighted{c.Mesh, op, v}
}

// spread is that of the cases.
const spread = 12

// newCoefficients returns random coefficients between exp(-spread/2) and exp(spread/2), 0 in the square of fixed
// points, and a screening on meshes whose walls fix nothing.
func newCoefficients(c Case, v values, spread float64) *coefficients {
	m, n := c.Mesh, len(v.field)
	k := &coefficients{values: v, centre: make([]float64, n), east: make([]float64, n), south: make([]float64, n),
		source: c.Source}
	r := rand.New(rand.NewPCG(uint64(m.NY), uint64(m.NX)))
	a := make([]float64, n)
	for i := range a {
		a[i] = math.Exp(spread * (r.Float64() - 0.5))
		if y, x := i/m.NX, i%m.NX; c.Fixed && (pattern{m}).square(y, x) {
			a[i] = 0
		}
	}
	screening := 0.0
	if w := m.Walls; w.Left == solver.Periodic && w.Top == solver.Periodic && !c.Operator.Loose {
		screening = 0.01
	}
	face := func(y, x, dy, dx int) float64 {
		from, ok1 := k.at(y, x)
		to, ok2 := k.at(y+dy, x+dx)
		if !ok1 || !ok2 || a[from]+a[to] == 0 {
			return 0
		}
		f := 2 * a[from] * a[to] / (a[from] + a[to])
		if dy != 0 {
			f *= c.Operator.Ratio
		}
		return f * k.half(y, x, dx != 0, dy != 0)
	}
	most := 0.0
	for i := range a {
		y, x := i/m.NX, i%m.NX
		k.east[i], k.south[i] = face(y, x, 0, 1), face(y, x, 1, 0)
		k.centre[i] = (face(y, x, 0, -1) + k.east[i]) + (face(y, x, -1, 0) + k.south[i]) +
			screening*k.half(y, x, true, true)
		most = max(most, k.centre[i])
	}
	_, exp := math.Frexp(most)
	for i := range a {
		for _, f := range []*float64{&k.centre[i], &k.east[i], &k.south[i]} {
			*f = math.Ldexp(*f, -exp)
		}
	}
	return k
}

// at returns the place of a point, which may lie beyond a periodic wall; ok is false for a point beyond another one.
func (k *coefficients) at(y, x int) (i int, ok bool) {
	m := k.mesh
	if m.PeriodicColumns() {
		x = 1 + (x-1+m.NX-2)%(m.NX-2)
	}
	y, ok = m.Canonical(y)
	return y*m.NX + x, ok && x >= 0 && x < m.NX
}

// half returns 1/2 for a point on a Neumann wall beside which the other direction counts, and 1/4 for two such walls.
func (k *coefficients) half(y, x int, rows, columns bool) float64 {
	m, v := k.mesh, 1.0
	if rows && (y == 0 && m.Walls.Top == solver.Neumann || y == m.NY-1 && m.Walls.Bottom == solver.Neumann) {
		v /= 2
	}
	if columns && (x == 0 && m.Walls.Left == solver.Neumann || x == m.NX-1 && m.Walls.Right == solver.Neumann) {
		v /= 2
	}
	return v
}

// ValueRow implements solver.ValueRows.
func (k *coefficients) ValueRow(iy int, v solver.Value, dst []byte) error {
	var from []float64
	switch v {
	case solver.Source:
		if !k.source {
			clear(dst)
			return nil
		}
		return source{k.values}.ValueRow(iy, v, dst)
	case solver.Diagonal:
		from = k.centre
	case solver.EastFace:
		from = k.east
	case solver.SouthFace:
		from = k.south
	default:
		return fmt.Errorf("value %d is not one of multigrid", v)
	}
	for x := range k.mesh.NX {
		i, _ := k.at(iy, x)
		binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(from[i]))
	}
	return nil
}

// setUp computes the levels of a weighted operator and compares their stencils with the oracle.
func (r *ranks) setUp(ctx context.Context, o oracle) error {
	oracle, ok := o.(*reference.Weighted)
	if !ok {
		return nil
	}
	each := func(do func(d multigrid.Device) error) error {
		for k, d := range r.devices {
			if err := do(d); err != nil {
				return fmt.Errorf("rank %d: %w", k, err)
			}
		}
		return nil
	}
	for l := range r.agglomerated {
		if err := each(func(d multigrid.Device) error { return d.Coarsen(ctx, l) }); err != nil {
			return fmt.Errorf("coarsen %d: %w", l, err)
		}
		if err := r.shareStencil(ctx, l+1, oracle); err != nil {
			return err
		}
		if l+1 == r.agglomerated {
			break
		}
		if err := each(func(d multigrid.Device) error { return d.Scale(ctx, l+1) }); err != nil {
			return fmt.Errorf("scale %d: %w", l+1, err)
		}
		if err := r.shareArray(ctx, l+1, multigrid.Scaling, oracle); err != nil {
			return err
		}
	}
	return each(func(d multigrid.Device) error { return d.Complete(ctx) })
}

// shareStencil compares the stencil of a level and copies it between the ranks.
func (r *ranks) shareStencil(ctx context.Context, level int, oracle *reference.Weighted) error {
	for a := multigrid.Centre; a <= multigrid.SouthWest; a++ {
		if err := r.shareArray(ctx, level, a, oracle); err != nil {
			return err
		}
	}
	return nil
}

// shareArray compares an array of a level and copies it between the ranks.
func (r *ranks) shareArray(ctx context.Context, level int, a multigrid.Array, oracle *reference.Weighted) error {
	for k, l := range r.layouts {
		s := l.AgglomeratedRows()
		if level < r.agglomerated {
			s = r.stripes[level][k]
		}
		err := r.compareRows(ctx, k, level, a, s, func(level int, s solver.Stripe) []byte {
			return oracle.Stencil(level, a, s)
		})
		if err != nil {
			return err
		}
	}
	if level < r.agglomerated {
		return r.swap(ctx, level, a)
	}
	return r.gather(ctx, a)
}
