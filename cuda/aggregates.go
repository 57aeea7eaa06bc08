package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/aggregation"
)

// setKernels are the names of the kernels of aggregates.
var setKernels = []string{"sets_restrict_points", "sets_correct_points", "sets_begin", "sets_restrict", "sets_correct",
	"sets_sweep", "sets_first", "sets_reduce", "sets_second", "sets_total_first", "sets_total_reduced",
	"sets_total_second", "sets_combine", "sets_few"}

// pointSets is struct PointSets in kernels/weighted_sets.cuh.
type pointSets struct {
	fine                                          grid
	v, b, centre, east, south, sets, unknowns     driver.DevicePtr
	scale                                         float64
	setsLo, lo, hi, strips                        int32
	rows, columns                                 int32
	firstRow, firstColumn, interiorLo, interiorHi int32
}

// setLevel is struct SetLevel.
type setLevel struct {
	excess, inverse, begin, neighbour, face, set, first, members driver.DevicePtr
	b, x, y, v, r, second, sums                                  driver.DevicePtr
	n, chunks                                                    int32
}

// sets is struct Sets.
type sets struct {
	level, next setLevel
	b, to, step driver.DevicePtr
}

// fewSets is struct FewSets.
type fewSets struct {
	levels, inverse driver.DevicePtr
	first, count    int32
}

// The blocks of the kernels, and struct SetStep.
const (
	setThreads = 256
	fewThreads = 1024
	setSums    = 3
	fewLevels  = 64
	stepBytes  = 56
	stepWay    = 48 // what happens next
	stepMore   = 4  // a second step
)

// fewUnknowns is the most unknowns of a level whose cycles one block does.
const fewUnknowns = 8 * aggregation.Chunk

// aggregates are the levels of sets.
type aggregates struct {
	*weighted
	restrict, correct call // between points and level 1
	levels            []setLevel
	calls             []setCalls // by level, below few
	begin             call
	few               int // the first level that one block does, or the number of levels
	tail              call
	way               *driver.HostMemory
}

// setCalls is the work of a level, by right-hand side: b, or r of the second step.
type setCalls struct {
	down, up                        [2]call
	correct                         call
	first, reduced, second, combine []call
	step                            driver.DevicePtr
}

// equationRows is rows of the equations of level 0, for goroutines that read them at once. The rows around those that
// are asked for are read together.
type equationRows struct {
	sync.Mutex
	rows map[multigrid.Array]solver.Stripe
	data map[multigrid.Array][]byte
}

// equationBlock is the number of rows that are read together, and how many of them lie before the one that is wanted.
const equationBlock, equationsBefore = 96, 16

// copyEquations copies rows of the equations of level 0.
func (w *weighted) copyEquations(ctx context.Context, a multigrid.Array, s solver.Stripe, dst []byte) error {
	p := w.points[0]
	f := map[multigrid.Array]field{multigrid.Centre: p.centre, multigrid.East: p.east, multigrid.South: p.south}[a]
	width := w.layout.Plan.RowBytes(0, a)
	if f.base == 0 || s.Lo < f.rows.Lo || s.Hi > f.rows.Hi || s.Rows() < 0 || len(dst) != s.Rows()*width {
		return fmt.Errorf("cuda levels: level 0, array %d: rows %v in %d bytes: rows %v of %d bytes are held", a, s,
			len(dst), f.rows, width)
	}
	e := &w.equationRows
	e.Lock()
	defer e.Unlock()
	if have := e.rows[a]; s.Lo < have.Lo || s.Hi > have.Hi {
		block := solver.Stripe{Lo: max(f.rows.Lo, s.Lo-equationsBefore),
			Hi: min(f.rows.Hi, max(s.Hi, s.Lo-equationsBefore+equationBlock))}
		data := make([]byte, block.Rows()*width)
		if err := w.dev.context.Bind(); err != nil {
			return err
		}
		if err := errors.Join(w.read(ctx, f, 0, width, block, data), w.dev.context.Unbind()); err != nil {
			return err
		}
		if e.rows == nil {
			e.rows, e.data = map[multigrid.Array]solver.Stripe{}, map[multigrid.Array][]byte{}
		}
		e.rows[a], e.data[a] = block, data
	}
	copy(dst, e.data[a][(s.Lo-e.rows[a].Lo)*width:])
	return nil
}

// Aggregate implements multigrid.Device. It may be called on another thread than the rest.
func (v *Levels) Aggregate(ctx context.Context, layout multigrid.Layout, part *aggregation.Part) error {
	if v.weighted == nil {
		return errors.New("cuda levels: aggregates of an operator that is not weighted")
	}
	if err := v.dev.context.Bind(); err != nil {
		return err
	}
	return errors.Join(v.aggregate(ctx, layout, part), v.dev.context.Unbind())
}

func (v *Levels) aggregate(ctx context.Context, layout multigrid.Layout, part *aggregation.Part) error {
	w := v.weighted
	if err := v.await(ctx); err != nil {
		return err
	}
	if err := errors.Join(w.release(), w.free(&w.coarse)); err != nil {
		return err
	}
	w.equationRows.rows, w.equationRows.data = nil, nil
	a := &aggregates{weighted: w}
	v.layout, v.levels, w.points, w.sets = layout, v.levels[:1], w.points[:1], a
	if err := a.open(layout.Plan.Aggregates); err != nil {
		return fmt.Errorf("aggregates: %w", err)
	}
	if err := a.connect(layout.Plan, part); err != nil {
		return fmt.Errorf("aggregates: %w", err)
	}
	if w.products != nil {
		w.products.differences = 1
	}
	return v.await(ctx)
}

// open copies the levels to the device and prepares their cycles.
func (a *aggregates) open(l *aggregation.Levels) error {
	for _, name := range setKernels {
		f, err := a.dev.module.Function(name)
		if err != nil {
			return err
		}
		a.functions[name] = f
	}
	if len(l.Levels) > fewLevels {
		return fmt.Errorf("%d levels, of which the GPU takes at most %d", len(l.Levels), fewLevels)
	}
	u := uploads{dev: a.dev}
	a.few = len(l.Levels)
	for i := range l.Levels {
		k := &l.Levels[i]
		n := k.Unknowns()
		v := setLevel{excess: table(&u, k.Excess), inverse: table(&u, k.Inverse), begin: table(&u, k.Begin),
			neighbour: table(&u, k.Neighbour), face: table(&u, k.Face), set: table(&u, k.Set),
			first: table(&u, k.First), members: table(&u, k.Members), n: int32(n),
			chunks: int32((n + aggregation.Chunk - 1) / aggregation.Chunk)}
		vectors := []*driver.DevicePtr{&v.b, &v.x, &v.y}
		if l.Accelerates(i) {
			vectors = append(vectors, &v.v, &v.r, &v.second)
			v.sums = a.vector(&u, setSums*int(v.chunks))
		}
		for _, p := range vectors {
			*p = a.vector(&u, n)
		}
		if n <= a.weighted.few {
			a.few = min(a.few, i)
		}
		a.levels = append(a.levels, v)
	}
	steps := a.vector(&u, max(1, a.few)*stepBytes/8)
	levels, inverse := table(&u, a.levels), table(&u, l.Inverse)
	if u.err != nil {
		return u.err
	}
	var err error
	if a.way, err = a.dev.allocHost(8); err != nil {
		return err
	}
	for i := range a.few {
		c, err := a.prepare(i, steps+driver.DevicePtr(i*stepBytes))
		if err != nil {
			return err
		}
		a.calls = append(a.calls, c)
	}
	if a.begin, err = a.callOf("sets_begin", sets{level: a.levels[0], b: a.levels[0].b}, a.levels[0].n); err != nil {
		return err
	}
	a.tail, err = newCall(a.dev.module, "sets_few", &fewSets{levels: levels, inverse: inverse, first: int32(a.few),
		count: int32(len(a.levels))}, fewThreads)
	a.tail.blocks = 1
	return err
}

// vector allocates n values.
func (a *aggregates) vector(u *uploads, n int) (p driver.DevicePtr) {
	if u.err == nil {
		p, u.err = u.dev.alloc(8 * int64(max(n, 1)))
	}
	return p
}

// callOf returns a kernel with an argument of its own, a thread for each of n unknowns.
func (a *aggregates) callOf(name string, arg sets, n int32) (call, error) {
	f := a.functions[name]
	args, err := f.Args(&arg)
	return call{f: f, args: args, blocks: (int(n) + setThreads - 1) / setThreads, threads: setThreads}, err
}

// prepare prepares the work of a level.
func (a *aggregates) prepare(i int, step driver.DevicePtr) (c setCalls, err error) {
	l := a.levels[i]
	arg := sets{level: l, step: step}
	add := func(name string, arg sets, n int32) call {
		k, e := a.callOf(name, arg, n)
		err = errors.Join(err, e)
		return k
	}
	c.step = step
	for k, vectors := range [2][2]driver.DevicePtr{{l.b, l.x}, {l.r, l.second}} {
		arg.b, arg.to = vectors[0], vectors[1]
		c.up[k] = add("sets_sweep", arg, l.n)
		if i+1 < len(a.levels) {
			arg.next = a.levels[i+1]
			c.down[k] = add("sets_restrict", arg, arg.next.n)
		}
	}
	c.correct = add("sets_correct", arg, l.n)
	if l.sums == 0 {
		return c, err
	}
	byChunk := func(name, total string) []call {
		k, t := add(name, arg, l.n), add(total, arg, setThreads)
		k.blocks = int(l.chunks)
		return []call{k, t}
	}
	c.first = byChunk("sets_first", "sets_total_first")
	c.reduced = byChunk("sets_reduce", "sets_total_reduced")
	c.second = byChunk("sets_second", "sets_total_second")
	c.combine = []call{add("sets_combine", arg, l.n)}
	return c, err
}

// connect prepares the ways between points and level 1, and the sweeps of level 0 without other levels.
func (a *aggregates) connect(plan *multigrid.Plan, part *aggregation.Part) error {
	l, p, t := a.weighted.levels[0], a.points[0], plan.Tiling
	rows := l.left()
	unknowns := make([]int32, 0, rows.Rows()*l.Mesh.NX)
	for y := rows.Lo; y < rows.Hi; y++ {
		first := plan.Aggregates.First[t.Wrapped(t.TileRow(y))]
		for _, s := range part.Sets(y) {
			if s >= 0 {
				s += first
			}
			unknowns = append(unknowns, s)
		}
	}
	u := uploads{dev: a.dev}
	in, scale := l.Mesh.Interior(), math.Ldexp(1, int(a.layout.Magnitude))
	arg := pointSets{fine: newGrid(l), v: l.v.origin(), b: l.b.origin(), centre: p.centre.origin(),
		east: p.east.origin(), south: p.south.origin(), sets: table(&u, unknowns), setsLo: int32(rows.Lo),
		interiorLo: int32(in.Lo), interiorHi: int32(in.Hi)}
	if u.err != nil {
		return u.err
	}
	shape := t.Shape()
	arg.rows, arg.columns = int32(shape.Rows), int32(shape.Columns)
	arg.firstRow, arg.firstColumn = int32(shape.FirstRow), int32(shape.FirstColumn)
	down, up := arg, arg
	down.unknowns, down.scale = a.levels[0].b, 1/scale
	up.unknowns, up.scale = a.levels[0].x, scale
	columns := (l.Mesh.NX + shape.Columns - 1) / shape.Columns
	var err, e error
	a.restrict, err = a.pointsCall("sets_restrict_points", &down, columns, t.Owned(l.own))
	a.correct, e = a.pointsCall("sets_correct_points", &up, l.Mesh.NX, rows)
	if err = errors.Join(err, e, a.prepareFinest()); err != nil {
		return err
	}
	n := solver.Stripe{Hi: int(a.levels[0].n)}
	a.weighted.levels = append(a.weighted.levels, &level{Level: plan.Levels[1], own: n, hasB: true,
		u: field{base: a.levels[0].x, rows: n, pitch: 8}, b: field{base: a.levels[0].b, rows: n, pitch: 8}})
	return nil
}

// pointsCall returns a kernel of columns and rows of tiles or points.
func (a *aggregates) pointsCall(name string, arg *pointSets, columns int, rows solver.Stripe) (call, error) {
	arg.lo, arg.hi = int32(rows.Lo), int32(rows.Hi)
	arg.strips = int32((columns + pointColumns - 1) / pointColumns)
	f := a.functions[name]
	args, err := f.Args(arg)
	return call{f: f, args: args, blocks: int(arg.strips) * ((rows.Rows() + pointRows - 1) / pointRows),
		threads: pointThreads}, err
}

// solve sets x of level 1 to the solution for b. It waits for the decisions of levels with many unknowns.
func (a *aggregates) solve(ctx context.Context) error {
	if err := a.begin.launch(a.stream); err != nil {
		return err
	}
	return a.solveOn(ctx, 0)
}

func (a *aggregates) solveOn(ctx context.Context, i int) error {
	switch {
	case i == a.few:
		return a.tail.launch(a.stream)
	case i+1 == len(a.levels):
		return a.calls[i].up[0].launch(a.stream)
	}
	c := &a.calls[i]
	if err := a.cycle(ctx, i, 0); err != nil || c.first == nil {
		return err
	}
	if err := errors.Join(launchAll(a.stream, c.first), launchAll(a.stream, c.reduced),
		a.stream.CopyFromDevice(a.way, 0, c.step+stepWay, 8)); err != nil {
		return err
	}
	if err := a.await(ctx); err != nil {
		return err
	}
	if binary.LittleEndian.Uint64(a.way.Bytes()) == stepMore {
		if err := errors.Join(a.cycle(ctx, i, 1), launchAll(a.stream, c.second)); err != nil {
			return err
		}
	}
	return launchAll(a.stream, c.combine)
}

// cycle does the cycle of a level for b or r.
func (a *aggregates) cycle(ctx context.Context, i, k int) error {
	c := &a.calls[i]
	if err := c.down[k].launch(a.stream); err != nil {
		return err
	}
	if err := a.solveOn(ctx, i+1); err != nil {
		return err
	}
	return errors.Join(c.correct.launch(a.stream), c.up[k].launch(a.stream))
}
