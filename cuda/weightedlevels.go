package cuda

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// The kernels of a weighted operator's levels, as those in kernel.go.
var (
	//go:embed kernels/weighted_levels.ptx.gz
	weightedLevelsPTX []byte
	//go:embed kernels/weighted_levels_90.cubin.gz
	weightedLevels90 []byte
)

func weightedImage(d *driver.Device, ptx bool) []byte {
	if !ptx && hopper(d) {
		return weightedLevels90
	}
	return weightedLevelsPTX
}

// weightedKernels are the names of the kernels.
var weightedKernels = []string{"weighted_load", "weighted_interpolate_f64", "weighted_interpolate_f32",
	"weighted_coarsen_f64", "weighted_coarsen_f32", "weighted_scale_f32", "weighted_complete_f32",
	"weighted_transfer_f64", "weighted_transfer_f32", "weighted_sweep_f64", "weighted_sweep_f32",
	"weighted_restrict_f64", "weighted_restrict_f32", "weighted_correct_f64", "weighted_correct_f32", "weighted_norm",
	"weighted_coarsest", "weighted_products"}

// weighted is what Levels of a weighted operator have besides.
type weighted struct {
	*Levels
	functions map[string]*driver.Function
	coarsest  *weightedCoarsest
	points    []*levelPoints // by level
	fixed     driver.DevicePtr
	// While the levels are set up: by level, the arrays from multigrid.Centre on; h of a level; P of a coarser one.
	wide   [][]field
	h      driver.DevicePtr
	p      driver.DevicePtr
	pieces []driver.DevicePtr // all memory that goes after the set-up
	setUp  bool               // and is there
}

// levelPoints is what a level has besides, and its work in cycles.
type levelPoints struct {
	scratch                                   field // a third field
	centre, east, south, southEast, southWest field
	transfer                                  field // P' of the next level: nine arrays, one after the other
	down, up                                  []call
}

// arrays returns those that need memory. The coarsest level is solved directly.
func (p *levelPoints) arrays(level, last int) []*field {
	switch level {
	case 0:
		return []*field{&p.scratch, &p.centre, &p.east, &p.south, &p.transfer}
	case last:
		return nil
	}
	return []*field{&p.scratch, &p.centre, &p.east, &p.south, &p.southEast, &p.southWest, &p.transfer}
}

// newLevelPoints returns that of a level without memory.
func newLevelPoints(l, next *level) *levelPoints {
	p := &levelPoints{}
	for _, f := range []*field{&p.scratch, &p.centre, &p.east, &p.south, &p.southEast, &p.southWest} {
		*f = l.u
	}
	if next != nil {
		p.transfer = field{rows: next.u.rows, pitch: next.u.pitch}
		p.transfer.rows.Hi += 8 * next.u.rows.Rows()
	}
	return p
}

// wideOf returns an array of float64 values of a level without memory.
func wideOf(l *level) field { return field{rows: l.u.rows, pitch: widePitch(l.Mesh)} }

// weightedBytes returns the bytes of GPU memory that the levels of a weighted operator take, those of their set-up
// included.
func weightedBytes(l multigrid.Layout) int64 {
	bytes := int64(sumBytes) + weightedCoarsestBytes(l)
	last := len(l.Plan.Levels) - 1
	h, p := int64(0), int64(0)
	for i := range l.Plan.Levels {
		v := newLevel(l, i)
		for _, a := range v.arrays() {
			bytes += a.bytes() + slack
		}
		var next *level
		if i < last {
			next = newLevel(l, i+1)
		}
		points := newLevelPoints(v, next)
		for _, a := range points.arrays(i, last) {
			bytes += a.bytes() + slack
		}
		if i > 0 {
			wide := wideOf(v)
			bytes += wideArrays * (wide.bytes() + slack)
			h, p = max(h, wide.bytes()), max(p, 9*wide.bytes())
		}
		if i == 0 && l.Fixed != nil {
			bytes += 4 * int64(v.fixedWords()*v.u.rows.Rows())
		}
	}
	return bytes + h + p + 2*slack
}

// wideArrays is the number of arrays of a level from multigrid.Centre on.
const wideArrays = int64(multigrid.Scaling - multigrid.Centre + 1)

// openWeighted allocates the levels of a weighted operator and prepares their cycles.
func (v *Levels) openWeighted() error {
	w := &weighted{Levels: v, functions: map[string]*driver.Function{}, setUp: true}
	v.weighted = w
	for _, name := range weightedKernels {
		f, err := v.dev.module.Function(name)
		if err != nil {
			return err
		}
		w.functions[name] = f
	}
	if err := w.functions["weighted_products"].SetDynamicShared(weightedProductBytes); err != nil {
		return err
	}
	last := len(v.layout.Plan.Levels) - 1
	for i := range last + 1 {
		v.levels = append(v.levels, newLevel(v.layout, i))
	}
	for i, l := range v.levels {
		if err := w.allocate(i, l); err != nil {
			return fmt.Errorf("level %d: %w", i, err)
		}
	}
	v.dev.onClose(w.release)
	if err := w.allocateSetUp(); err != nil {
		return fmt.Errorf("to set up levels: %w", err)
	}
	if v.layout.Fixed != nil {
		var err error
		if w.fixed, err = uploadTable(v.dev, v.levels[0].fixedBits(v.layout.Fixed[0])); err != nil {
			return fmt.Errorf("fixed points: %w", err)
		}
	}
	for i := range last {
		var err error
		if i == 0 {
			err = prepareWeighted[float64](w, i)
		} else {
			err = prepareWeighted[float32](w, i)
		}
		if err != nil {
			return fmt.Errorf("level %d: %w", i, err)
		}
	}
	var err error
	w.coarsest, err = w.openCoarsest()
	return err
}

// allocate allocates the arrays of a level that stay.
func (w *weighted) allocate(i int, l *level) error {
	if err := w.Levels.allocate(l); err != nil {
		return err
	}
	var next *level
	if i+1 < len(w.levels) {
		next = w.levels[i+1]
	}
	p := newLevelPoints(l, next)
	w.points = append(w.points, p)
	return w.zero(p.arrays(i, len(w.levels)-1), w.dev.alloc)
}

// allocateSetUp allocates what the set-up needs.
func (w *weighted) allocateSetUp() error {
	piece := func(n int64) (driver.DevicePtr, error) {
		p, err := w.dev.context.Alloc(n)
		if err == nil {
			w.dev.bytes += n
			w.pieces = append(w.pieces, p)
		}
		return p, err
	}
	most := int64(0)
	w.wide = make([][]field, len(w.levels))
	for i, l := range w.levels[1:] {
		most = max(most, wideOf(l).bytes())
		var arrays []*field
		w.wide[i+1] = slices.Repeat([]field{wideOf(l)}, int(wideArrays))
		for k := range w.wide[i+1] {
			arrays = append(arrays, &w.wide[i+1][k])
		}
		if err := w.zero(arrays, piece); err != nil {
			return err
		}
	}
	var err error
	if w.h, err = piece(most + slack); err != nil {
		return err
	}
	w.p, err = piece(9*most + slack)
	return err
}

// release frees what the set-up needs.
func (w *weighted) release() error {
	var errs []error
	for _, p := range w.pieces {
		errs = append(errs, w.dev.context.Free(p))
	}
	w.pieces, w.wide, w.setUp = nil, nil, false
	return errors.Join(errs...)
}

// equations returns those of a level while it is set up.
func (w *weighted) equations(level int) (e equations) {
	if level == 0 {
		p := w.points[0]
		return equations{c: p.centre.origin(), e: p.east.origin(), s: p.south.origin()}
	}
	a := w.wide[level]
	l := wideOf(w.levels[level])
	l.base = w.h
	return equations{c: a[0].origin(), e: a[1].origin(), s: a[2].origin(), se: a[3].origin(), sw: a[4].origin(),
		g: a[5].origin(), h: l.origin()}
}

// argOf returns the argument of kernels for a level.
func argOf[F float32 | float64](w *weighted, level int) weightedArg[F] {
	l, p := w.levels[level], w.points[level]
	a := weightedArg[F]{b: l.b.origin(), centre: p.centre.origin(), east: p.east.origin(), south: p.south.origin(),
		southEast: p.southEast.origin(), southWest: p.southWest.origin(), sums: w.counts,
		bias: biases(w.layout.Magnitude), scale: 1, fine: newGrid(l), x: newHalving(l.HalveX), y: newHalving(l.HalveY)}
	if level == 0 {
		a.fixed, a.fixedPitch = w.fixed, int32(l.fixedWords())
	}
	if w.setUp {
		a.own = w.equations(level)
	}
	if level+1 == len(w.levels) {
		return a
	}
	next := w.levels[level+1]
	a.coarse, a.coarseB, a.coarseU = newGrid(next), next.b.origin(), next.u.origin()
	transfer := p.transfer
	a.transfer = nine{transfer.origin(), int64(next.u.rows.Rows()) * int64(next.u.pitch) / 4}
	if w.setUp {
		a.next = w.equations(level + 1)
		wide := wideOf(next)
		wide.base = w.p
		a.p = nine{wide.origin(), int64(next.u.rows.Rows()) * int64(wide.pitch) / 8}
	}
	return a
}

// kernelFor returns a kernel of the points of a level in rows, with an argument of its own.
func kernelFor[F float32 | float64](w *weighted, name string, a weightedArg[F], columns int, rows solver.Stripe) (call,
	error) {
	a.lo, a.hi = int32(rows.Lo), int32(rows.Hi)
	a.strips = int32((columns + pointColumns - 1) / pointColumns)
	f := w.functions[name]
	args, err := f.Args(&a)
	if err != nil || rows.Rows() <= 0 {
		return call{}, err
	}
	return call{f: f, args: args, blocks: int(a.strips) * ((rows.Rows() + pointRows - 1) / pointRows),
		threads: pointThreads}, nil
}

// typed returns the name of a kernel for a level.
func typed(name string, level int) string {
	if level == 0 {
		return "weighted_" + name + "_f64"
	}
	return "weighted_" + name + "_f32"
}

// reaching returns the rows of a level that lie at most n rows beyond those that the rank owns and that are swept.
func (l *level) reaching(n int) solver.Stripe {
	g, s := newGrid(l), l.own
	if l.neighbour[solver.Top] {
		s.Lo = max(s.Lo-n, int(g.top))
	}
	if l.neighbour[solver.Bottom] {
		s.Hi = min(s.Hi+n, int(g.bottom))
	}
	return s
}

// prepareWeighted prepares the cycles of a level.
func prepareWeighted[F float32 | float64](w *weighted, level int) error {
	l, next, p := w.levels[level], w.levels[level+1], w.points[level]
	a := argOf[F](w, level)
	var failed error
	add := func(to *[]call, name string, a weightedArg[F], columns int, rows solver.Stripe) {
		c, err := kernelFor(w, name, a, columns, rows)
		*to, failed = append(*to, c), errors.Join(failed, err)
	}
	weights := multigrid.Weights()
	fields := [...]driver.DevicePtr{l.u.origin(), p.scratch.origin(), l.v.origin(), p.scratch.origin(), l.v.origin()}
	for i, weight := range weights {
		a.from, a.to, a.weight = fields[i], fields[i+1], F(weight)
		add(&p.down, typed("sweep", level), a, l.Mesh.NX, l.reaching(multigrid.HaloDepth-1-i))
	}
	a.from = l.v.origin()
	if level == 0 {
		a.scale = math.Ldexp(1, -int(w.layout.Magnitude))
	}
	add(&p.down, typed("restrict", level), a, next.Mesh.NX, w.restricts(next))
	if level == 0 {
		c, err := w.normOf(any(a).(weightedArg[float64]))
		p.down, failed = append([]call{c}, p.down...), errors.Join(failed, err)
		a.scale = math.Ldexp(1, int(w.layout.Magnitude))
	}
	a.from, a.to = l.v.origin(), l.u.origin()
	add(&p.up, typed("correct", level), a, l.Mesh.NX, l.reaching(multigrid.Sweeps))
	slices.Reverse(weights[:])
	for i, weight := range weights {
		a.from, a.to, a.weight = l.u.origin(), p.scratch.origin(), F(weight)
		if i%2 == 1 {
			a.from, a.to = a.to, a.from
		}
		add(&p.up, typed("sweep", level), a, l.Mesh.NX, l.reaching(multigrid.Sweeps-1-i))
	}
	return failed
}

// normOf returns the kernel of the norm.
func (w *weighted) normOf(a weightedArg[float64]) (call, error) {
	l := w.levels[0]
	a.from = l.u.origin()
	a.lo, a.hi = int32(l.own.Lo), int32(l.own.Hi)
	strips, groups := groupsOf(l)
	a.strips = int32(strips)
	f := w.functions["weighted_norm"]
	args, err := f.Args(&a)
	return call{f: f, args: args, blocks: strips * groups, threads: normThreads}, err
}

// groupsOf returns the strips of columns of the blocks that have groups of the norm, and the rows of groups.
func groupsOf(l *level) (strips, rows int) {
	const columns = normThreads * solver.GroupCols
	strips = (l.Mesh.NX + columns - 1) / columns
	return strips, (l.own.Hi+solver.GroupRows-1)/solver.GroupRows - l.own.Lo/solver.GroupRows
}

// productsOf returns the kernel of the scalar products of conjugate gradients.
func (w *weighted) productsOf(s *CG) (call, error) {
	l := w.levels[0]
	a := &productArg{level: argOf[float64](w, 0), u: l.u.origin(), x: s.x.origin(), p: s.p.origin(), sums: s.sums,
		unitShift: dotShift(w.layout.Magnitude), unitBits: multigrid.DotBits}
	a.level.lo, a.level.hi = int32(l.own.Lo), int32(l.own.Hi)
	strips, groups := groupsOf(l)
	a.level.strips = int32(strips)
	f := w.functions["weighted_products"]
	args, err := f.Args(a)
	return call{f: f, args: args, blocks: strips * groups, threads: normThreads, shared: weightedProductBytes}, err
}

// load loads what the points of level 0 have of their own.
func (w *weighted) load(ctx context.Context) error {
	l, p := w.levels[0], w.points[0]
	for _, f := range []struct {
		to    *field
		value solver.Value
	}{{&p.centre, solver.Diagonal}, {&p.east, solver.EastFace}, {&p.south, solver.SouthFace}, {&l.b, solver.Source}} {
		if err := w.fill(ctx, l, f.to, rowsOf(w.layout.Values, f.value)); err != nil {
			return fmt.Errorf("%v: %w", f.value, err)
		}
	}
	a := argOf[float64](w, 0)
	a.to = l.u.origin()
	c, err := kernelFor(w, "weighted_load", a, l.Mesh.NX, l.u.rows)
	if err != nil {
		return err
	}
	if err := c.launch(w.stream); err != nil {
		return err
	}
	return w.stream.CopyOnDevice(p.scratch.base, l.u.base, int(l.u.bytes()))
}

// run launches a kernel of the set-up.
func run[F float32 | float64](w *weighted, name string, a weightedArg[F], columns int, rows solver.Stripe) error {
	c, err := kernelFor(w, name, a, columns, rows)
	if err != nil {
		return err
	}
	return c.launch(w.stream)
}

// interpolate computes P of a level.
func (w *weighted) interpolate(level int) error {
	next := w.levels[level+1]
	g := newGrid(next)
	rows := solver.Stripe{Lo: int(g.top), Hi: int(g.bottom)}
	if level == 0 {
		return run(w, typed("interpolate", level), argOf[float64](w, level), next.Mesh.NX, rows)
	}
	return run(w, typed("interpolate", level), argOf[float32](w, level), next.Mesh.NX, rows)
}

// transfers computes P' of a level whose P is there.
func (w *weighted) transfers(level int) error {
	next := w.levels[level+1]
	g := newGrid(next)
	rows := solver.Stripe{Lo: int(g.top), Hi: int(g.bottom)}
	if level == 0 {
		return run(w, typed("transfer", level), argOf[float64](w, level), next.Mesh.NX, rows)
	}
	return run(w, typed("transfer", level), argOf[float32](w, level), next.Mesh.NX, rows)
}

// scale computes h of rows of a level and, if wanted, the scaling g.
func (w *weighted) scale(level int, rows solver.Stripe, g bool) error {
	a := argOf[float32](w, level)
	if !g {
		a.own.g = 0
	}
	return run(w, "weighted_scale_f32", a, w.levels[level].Mesh.NX, rows)
}

// errSetUp is the error for calls after Complete, or for an operator without levels to set up.
var errSetUp = errors.New("cuda levels: they are not being set up")

// settingUp returns an error unless the levels are being set up.
func (v *Levels) settingUp(ctx context.Context) (*weighted, error) {
	if v.weighted == nil || !v.weighted.setUp {
		return nil, errSetUp
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return v.weighted, nil
}

// Coarsen implements multigrid.WeightedDevice.
func (v *Levels) Coarsen(ctx context.Context, level int) error {
	w, err := v.settingUp(ctx)
	if err != nil {
		return err
	}
	return w.coarsen(level)
}

func (w *weighted) coarsen(level int) error {
	if err := w.interpolate(level); err != nil {
		return err
	}
	next := w.levels[level+1]
	if level == 0 {
		return run(w, typed("coarsen", level), argOf[float64](w, level), next.Mesh.NX, w.restricts(next))
	}
	return run(w, typed("coarsen", level), argOf[float32](w, level), next.Mesh.NX, w.restricts(next))
}

// Scale implements multigrid.WeightedDevice.
func (v *Levels) Scale(ctx context.Context, level int) error {
	w, err := v.settingUp(ctx)
	if err != nil {
		return err
	}
	return w.scale(level, w.levels[level].own, true)
}

// Complete implements multigrid.WeightedDevice.
func (v *Levels) Complete(ctx context.Context) error {
	w, err := v.settingUp(ctx)
	if err != nil {
		return err
	}
	last := len(w.levels) - 1
	for l := w.layout.Agglomerated; l <= last; l++ {
		if l > w.layout.Agglomerated {
			if err := w.coarsen(l - 1); err != nil {
				return err
			}
		}
		if err := w.scale(l, w.levels[l].own, true); err != nil {
			return err
		}
	}
	for l := range last {
		if err := w.complete(l); err != nil {
			return err
		}
	}
	if err := w.scale(last, w.levels[last].own, false); err != nil {
		return err
	}
	if err := w.coarsest.complete(ctx, w); err != nil {
		return err
	}
	return w.release()
}

// complete computes what cycles need of a level.
func (w *weighted) complete(level int) error {
	if level > 0 {
		l := w.levels[level]
		g := newGrid(l)
		rows := solver.Stripe{Lo: int(g.top), Hi: int(g.bottom)}
		if err := w.scale(level, rows, false); err != nil {
			return err
		}
		if err := run(w, "weighted_complete_f32", argOf[float32](w, level), l.Mesh.NX, rows); err != nil {
			return err
		}
	}
	if err := w.interpolate(level); err != nil {
		return err
	}
	return w.transfers(level)
}

// down does Down on a level, beginning with u or with 0.
func (w *weighted) down(level int, fromU bool) error {
	if level > 0 && !fromU {
		u := w.levels[level].u
		if err := w.stream.Fill(u.base, 0, int(u.bytes())); err != nil {
			return err
		}
	}
	return launchAll(w.stream, w.points[level].down)
}

// cycles does the cycle of a level that is held as a whole, and does it twice where the plan has it.
func (w *weighted) cycles(level int) error {
	if level == len(w.levels)-1 {
		return w.coarsest.call.launch(w.stream)
	}
	m := w.levels[level].Mesh
	times := 1
	if m.NX*m.NY <= w.layout.Plan.Twice {
		times = 2
	}
	for i := range times {
		if err := w.down(level, i > 0); err != nil {
			return err
		}
		if err := w.cycles(level + 1); err != nil {
			return err
		}
		if err := launchAll(w.stream, w.points[level].up); err != nil {
			return err
		}
	}
	return nil
}
