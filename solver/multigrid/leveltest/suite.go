// Package leveltest is the conformance suite of multigrid devices: it compares their cycles, level by level and bit by
// bit, with the oracle of internal/compute/reference, for one rank and for several.
package leveltest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"jacobi/internal/compute/reference"
	"jacobi/solver"
	"jacobi/solver/exchangetest"
	"jacobi/solver/multigrid"
)

// Factory opens a device. The suite closes it.
type Factory func(l multigrid.Layout) (multigrid.Device, error)

// Case is a problem on a mesh and the number of ranks that divide it.
type Case struct {
	Mesh      solver.Mesh
	Operator  solver.Operator // Scale and Blend, or Weighted and Ratio
	Source    bool
	Fixed     bool             // of a weighted operator: a bar, a square and single points inside are fixed
	Magnitude solver.Magnitude // the values are that large
	Ranks     int
}

func (c Case) String() string {
	numbers := fmt.Sprintf("h%.3g q%.3g", c.Operator.Scale, c.Operator.Blend)
	if c.Operator.Weighted {
		numbers = fmt.Sprintf("weighted ratio %.3g", c.Operator.Ratio)
	}
	if c.Operator.Loose {
		numbers += " loose"
	}
	return fmt.Sprintf("%dx%d walls%v %s source %t fixed %t 2^%d ranks %d", c.Mesh.NX, c.Mesh.NY, c.Mesh.Walls, numbers,
		c.Source, c.Fixed, c.Magnitude, c.Ranks)
}

// Cases returns the cases of constant operators.
func Cases() []Case {
	const periodic, neumann = solver.Periodic, solver.Neumann
	walls := []solver.Walls{
		{},
		{Top: periodic, Bottom: periodic},
		{Left: periodic, Right: periodic},
		{Left: periodic, Right: periodic, Top: periodic, Bottom: periodic},
		{Left: neumann},
		{Right: neumann, Top: neumann},
		{Left: neumann, Right: neumann, Bottom: neumann},
	}
	half := solver.Operator{Scale: 0.5, Blend: 0.5}
	flat := solver.Operator{Scale: 0.48, Blend: 0.2}   // screened, hx = hy/2
	steep := solver.Operator{Scale: 0.5, Blend: 0.875} // hx = sqrt(7) hy
	var cases []Case
	for i, w := range walls {
		for k, size := range [][2]int{{5, 4}, {33, 33}, {100, 67}, {18, 70}, {131, 40}} {
			op := []solver.Operator{half, flat, steep}[(i+k)%3]
			if w.Left == periodic && w.Top == periodic { // nothing but screening determines a constant
				op = flat
			}
			cases = append(cases, Case{Mesh: mesh(size[0], size[1], w), Operator: op, Source: (i+k)%2 == 0,
				Magnitude: solver.Magnitude([]int{0, 3, -40, 200}[k%4]), Ranks: 1})
		}
	}
	cases = append(cases, Case{Mesh: mesh(40, 30, solver.Walls{}), Ranks: 1})
	for _, w := range []solver.Walls{walls[1], walls[6]} { // coarsest levels of 9 x 1000 points
		cases = append(cases, Case{Mesh: mesh(17, 1000, w), Operator: flat, Ranks: 1})
	}
	cases = append(cases, Case{Mesh: mesh(1000, 17, walls[2]), Operator: steep, Ranks: 1})
	for i, w := range walls[:6] {
		for _, ranks := range []int{2, 3, 5} {
			op := []solver.Operator{half, flat}[i%2]
			cases = append(cases, Case{Mesh: mesh(61, 300+i, w), Operator: op, Source: i%2 == 1, Ranks: ranks})
		}
	}
	return append(cases, loose(solver.Operator{Scale: 0.5, Blend: 0.4})...)
}

// loose returns cases in which nothing determines a constant.
func loose(op solver.Operator) (cases []Case) {
	const periodic, neumann = solver.Periodic, solver.Neumann
	op.Loose = true
	for _, w := range []solver.Walls{
		{Left: neumann, Right: neumann, Top: neumann, Bottom: neumann},
		{Left: periodic, Right: periodic, Top: neumann, Bottom: neumann},
		{Left: neumann, Right: neumann, Top: periodic, Bottom: periodic},
		{Left: periodic, Right: periodic, Top: periodic, Bottom: periodic},
	} {
		cases = append(cases, Case{Mesh: mesh(34, 40, w), Operator: op, Source: true, Ranks: 1},
			Case{Mesh: mesh(61, 300, w), Operator: op, Ranks: 3})
	}
	return cases
}

func mesh(nx, ny int, w solver.Walls) solver.Mesh {
	return solver.Mesh{NX: nx, NY: ny, DType: solver.Float64, Walls: w}
}

// cycles is the number of cycles of a case.
const cycles = 2

// agglomeratedPoints makes ranks divide several levels of small meshes.
const agglomeratedPoints = 500

// Run runs the cases of all operators, with conjugate gradients and aggregates where the operator has them.
func Run(t *testing.T, open CGFactory) {
	runCases(t, Factory(open.device), slices.Concat(Cases(), WeightedCases()), Check)
	t.Run("conjugate gradients", func(t *testing.T) { runCases(t, open, WeightedCases(), CheckCG) })
	t.Run("aggregates", func(t *testing.T) { RunAggregates(t, open) })
}

func runCases[F any](t *testing.T, open F, cases []Case, check func(context.Context, Case, F) error) {
	for _, c := range Sample(cases) {
		t.Run(c.String(), func(t *testing.T) {
			if err := check(t.Context(), c, open); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Sample returns the cases, and with -short every fourth one: the oracle is slow under the race detector.
func Sample(cases []Case) (some []Case) {
	for i, c := range cases {
		if i%4 == 0 || !testing.Short() {
			some = append(some, c)
		}
	}
	return some
}

// oracle is one of internal/compute/reference.
type oracle interface {
	Cycle() solver.Sum
	Rows(level int, s solver.Stripe) []byte
	RightSide(level int, s solver.Stripe) []byte
}

func newOracle(c Case, p *multigrid.Plan, op solver.Operator, v values) (oracle, error) {
	if op.Weighted {
		return reference.NewWeighted(p, op, v, c.Magnitude)
	}
	return reference.NewMultigrid(p, op, v, c.Magnitude)
}

// problem returns the levels of a case, its operator with all rows, and the initial field.
func (c Case) problem() (*multigrid.Plan, solver.Operator, values, error) {
	v, op := newValues(c), c.Operator
	if c.Fixed {
		op.Fixed = pattern{c.Mesh}
	}
	switch {
	case op.Weighted:
		op.Values = newCoefficients(c, v, spread)
	case c.Source:
		op.Values = source{v}
	}
	p, err := multigrid.NewPlan(c.Mesh, op)
	if err == nil && op.Weighted {
		p.WCyclePoints = twice
	}
	return p, op, v, err
}

// Check compares the ranks of a case with the oracle.
func Check(ctx context.Context, c Case, open Factory) (err error) {
	plan, op, values, err := c.problem()
	if err != nil {
		return err
	}
	var oracle oracle
	ranks, err := newRanks(ctx, c, plan, op, values, open)
	if err != nil {
		return err
	}
	defer ranks.close()
	if oracle, err = newOracle(c, plan, op, values); err != nil {
		return err
	}
	if err := ranks.setUp(ctx, oracle); err != nil {
		return fmt.Errorf("set-up: %w", err)
	}
	for k := range cycles {
		if err := ranks.cycle(ctx, oracle); err != nil {
			return fmt.Errorf("cycle %d: %w", k, err)
		}
	}
	return ranks.findsNaN(ctx)
}

// cycle does a cycle and compares its levels with the oracle.
func (r *ranks) cycle(ctx context.Context, oracle oracle) error {
	if err := r.down(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx, 0, multigrid.Unknowns, oracle.Rows); err != nil {
		return fmt.Errorf("after the way down: %w", err)
	}
	want := oracle.Cycle()
	for l := 1; l <= r.agglomerated; l++ {
		if err := r.compare(ctx, l, multigrid.RightSide, oracle.RightSide); err != nil {
			return err
		}
	}
	if got, err := r.sum(ctx); err != nil || got != want {
		return fmt.Errorf("sum %v (%w), want %v", got, err, want)
	}
	if err := r.up(ctx); err != nil {
		return err
	}
	for l := r.agglomerated; l >= 0; l-- {
		if err := r.compare(ctx, l, multigrid.Unknowns, oracle.Rows); err != nil {
			return err
		}
	}
	return r.measures(ctx)
}

// ranks are the devices of a case.
type ranks struct {
	plan         *multigrid.Plan
	devices      []multigrid.Device
	layouts      []multigrid.Layout
	stripes      [][]solver.Stripe // by level and rank
	agglomerated int
}

func newRanks(ctx context.Context, c Case, p *multigrid.Plan, op solver.Operator, rows solver.RowSource,
	open Factory) (*ranks, error) {
	finest, err := solver.Partition(c.Mesh.Interior(), c.Ranks, 1)
	if err != nil {
		return nil, err
	}
	r := &ranks{plan: p}
	r.stripes, r.agglomerated = p.Divide(finest, agglomeratedPoints)
	var fixed multigrid.FixedRuns
	if op.Fixed != nil {
		if fixed, err = multigrid.FixedPoints(c.Mesh, op.Fixed); err != nil {
			return nil, err
		}
	}
	for k := range c.Ranks {
		l := p.LayoutOf(r.stripes, r.agglomerated, k)
		l.Magnitude, l.Values, l.Fixed = c.Magnitude, op.Values, fixed
		d, err := open(l)
		if err != nil {
			r.close()
			return nil, fmt.Errorf("rank %d: %w", k, err)
		}
		r.devices, r.layouts = append(r.devices, d), append(r.layouts, l)
		if err := d.Load(ctx, rows); err != nil {
			r.close()
			return nil, fmt.Errorf("rank %d: load: %w", k, err)
		}
	}
	return r, nil
}

func (r *ranks) close() {
	for _, d := range r.devices {
		_ = d.Close()
	}
}

// down does Down on all levels that are divided, and gives every rank the right-hand side of the first other level.
func (r *ranks) down(ctx context.Context) error {
	for l := range r.agglomerated {
		a := multigrid.RightSide
		if l == 0 {
			a = multigrid.Unknowns
		}
		if err := r.swap(ctx, l, a); err != nil {
			return err
		}
		for k, d := range r.devices {
			if err := d.Down(ctx, l); err != nil {
				return fmt.Errorf("rank %d: down %d: %w", k, l, err)
			}
		}
	}
	return r.gather(ctx, multigrid.RightSide)
}

// grid returns the mesh of a rank.
func (r *ranks) grid(k int) *multigrid.Grid {
	return &multigrid.Grid{Device: r.devices[k], Layout: r.layouts[k], Stripes: r.stripes, Rank: k}
}

// gather gives every rank an array of the agglomerated level.
func (r *ranks) gather(ctx context.Context, a multigrid.Array) error {
	for from := range r.devices {
		b := r.grid(from).RankBlocks(a)
		block := make([]byte, b.BlockBytes()[from])
		if err := b.CopyBlock(ctx, block); err != nil {
			return fmt.Errorf("rank %d: copy rows: %w", from, err)
		}
		for to := range r.devices {
			if err := r.grid(to).RankBlocks(a).SetBlock(ctx, from, block); err != nil {
				return fmt.Errorf("rank %d: set rows: %w", to, err)
			}
		}
	}
	return nil
}

// up does Agglomerate, and Up on all levels that are divided.
func (r *ranks) up(ctx context.Context) error {
	for k, d := range r.devices {
		if err := d.Agglomerate(ctx); err != nil {
			return fmt.Errorf("rank %d: agglomerate: %w", k, err)
		}
	}
	for l := r.agglomerated - 1; l >= 0; l-- {
		if l+1 < r.agglomerated {
			if err := r.swap(ctx, l+1, multigrid.Unknowns); err != nil {
				return err
			}
		}
		for k, d := range r.devices {
			if err := d.Up(ctx, l); err != nil {
				return fmt.Errorf("rank %d: up %d: %w", k, l, err)
			}
		}
	}
	return nil
}

// swap fills the halos of a level.
func (r *ranks) swap(ctx context.Context, level int, a multigrid.Array) error {
	n := len(r.devices)
	for k := range r.devices {
		from := multigrid.Halo{Grid: r.grid(k), Level: level, Array: a}
		for i, bytes := range from.HaloBytes() {
			if bytes == 0 {
				continue
			}
			side, rows := solver.Side(i), make([]byte, bytes)
			to := exchangetest.Neighbour(r.plan.Levels[0].Mesh, n, k, side)
			halo := multigrid.Halo{Grid: r.grid(to), Level: level, Array: a}
			if err := from.CopyEdge(ctx, side, rows); err != nil {
				return fmt.Errorf("rank %d: copy rows: %w", k, err)
			}
			if err := halo.SetHalo(ctx, side.Opposite(), rows); err != nil {
				return fmt.Errorf("rank %d: set rows: %w", to, err)
			}
		}
	}
	return nil
}

// sum returns the sum over all ranks.
func (r *ranks) sum(ctx context.Context) (solver.Sum, error) {
	var total solver.Sum
	for k, d := range r.devices {
		s, err := d.Sum(ctx)
		if err != nil {
			return total, fmt.Errorf("rank %d: sum: %w", k, err)
		}
		total.Merge(s)
	}
	return total, nil
}

// compare compares the interior points of the rows that each rank owns with those of the oracle.
func (r *ranks) compare(ctx context.Context, level int, a multigrid.Array,
	oracle func(int, solver.Stripe) []byte) error {
	for k := range r.devices {
		s := r.plan.Levels[level].Mesh.Interior()
		if level < r.agglomerated {
			s = r.stripes[level][k]
		}
		if err := r.compareRows(ctx, k, level, a, s, oracle); err != nil {
			return err
		}
	}
	return nil
}

// compareRows compares the interior points of rows of rank k with those of the oracle.
func (r *ranks) compareRows(ctx context.Context, k, level int, a multigrid.Array, s solver.Stripe,
	oracle func(int, solver.Stripe) []byte) error {
	m, bytesPerRow := r.plan.Levels[level].Mesh, r.plan.RowBytes(level, a)
	lo, hi := m.InteriorColumns()
	lo, hi = lo*bytesPerRow/m.NX, hi*bytesPerRow/m.NX
	got, want := make([]byte, s.Rows()*bytesPerRow), oracle(level, s)
	if err := r.devices[k].CopyRows(ctx, level, a, s, got); err != nil {
		return fmt.Errorf("rank %d: copy rows of level %d: %w", k, level, err)
	}
	for i := range s.Rows() {
		if at := i * bytesPerRow; !bytes.Equal(got[at+lo:at+hi], want[at+lo:at+hi]) {
			return fmt.Errorf("rank %d: level %d, array %d: row %d of %v differs", k, level, a, s.Lo+i, s)
		}
	}
	return nil
}
