package cuda

import (
	"context"
	"slices"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// typed returns the name of a kernel for a level.
func typed(name string, level int) string {
	if level == 0 {
		return "weighted_" + name + "_f64"
	}
	return "weighted_" + name + "_f32"
}

// withWeights returns an argument with the weights of one way.
func withWeights[F float32 | float64](a weightedArg[F], reversed bool) weightedArg[F] {
	weights := multigrid.Weights()
	if reversed {
		slices.Reverse(weights[:])
	}
	for i, v := range weights {
		a.weights[i] = F(v)
	}
	return a
}

// prepareFinest prepares the cycles of level 0.
func (w *weighted) prepareFinest() error {
	l := w.levels[0]
	down := withWeights(argOf[float64](w, 0), false)
	down.from, down.to, down.scale = l.u.origin(), l.v.origin(), 1/down.scale
	if w.sets == nil {
		restricts := w.restricts(w.levels[1])
		down.coarseLo, down.coarseHi = int32(restricts.Lo), int32(restricts.Hi)
	}
	c, err := pipe(w, "weighted_down_f64", down, l, l.left(), pipeSideDown, pipeBytes)
	if err != nil {
		return err
	}
	l.down = []call{c}
	up := withWeights(argOf[float64](w, 0), true)
	up.from, up.to = l.v.origin(), l.u.origin()
	if c, err = pipe(w, "weighted_up_f64", up, l, l.own, pipeSideUp, pipeBytes); err != nil {
		return err
	}
	if l.up = []call{c}; w.sets != nil {
		l.down, l.up = append(l.down, w.sets.restrict), []call{w.sets.correct, c}
	}
	return nil
}

// partsOf returns how blocks that go down the rows of strips of columns divide a level: the strips, the blocks in all
// and the rows of a block, in whole groups. Of all numbers of rows it takes that with which the multiprocessors, each
// with pipeBlocks blocks at once, take the fewest steps.
func (w *weighted) partsOf(l *level, rows solver.Stripe, step int) (strips, blocks, part int) {
	atOnce, least := pipeBlocks*w.dev.gpu.SMs, 0
	for r := pipeMost; r > 0; r -= solver.GroupRows {
		s, n := blocksOf(l.Mesh.NX, rows, step, r)
		if steps := (n + atOnce - 1) / atOnce * (r + pipeLead); least == 0 || steps < least {
			strips, blocks, part, least = s, n, r, steps
		}
	}
	return strips, blocks, part
}

// pipe returns a kernel that does the sweeps of one way in rows of a level, whose strips have some columns at each side
// that serve the others.
func pipe[F float32 | float64](w *weighted, name string, a weightedArg[F], l *level, rows solver.Stripe, side,
	shared int) (call, error) {
	a.lo, a.hi, a.countLo, a.countHi = int32(rows.Lo), int32(rows.Hi), int32(l.own.Lo), int32(l.own.Hi)
	strips, blocks, part := w.partsOf(l, rows, pipeThreads-2*side)
	a.strips, a.blockRows = int32(strips), int32(part)
	f := w.functions[name]
	args, err := f.Args(&a)
	return call{f: f, args: args, blocks: blocks, threads: pipeThreads, shared: shared}, err
}

// prepareCoarser prepares the cycles of another level.
func (w *weighted) prepareCoarser(level int) error {
	l, next := w.levels[level], w.levels[level+1]
	down := withWeights(argOf[float32](w, level), false)
	down.from, down.to = l.u.origin(), l.v.origin()
	first, up := down, withWeights(down, true)
	first.from, up.from, up.to = 0, l.v.origin(), l.u.origin()
	if l.Mesh.NX*l.Mesh.NY >= w.streamed {
		return w.prepareStreamed(l, w.restricts(next), first, down, up)
	}
	again, err := w.tiled("weighted_down_f32", down, l, l.left())
	if err != nil {
		return err
	}
	begin, err := w.tiled("weighted_down_f32", first, l, l.left())
	if err != nil {
		return err
	}
	restriction, err := kernelFor(w, "weighted_restrict_f32", up, next.Mesh.NX, w.restricts(next))
	if err != nil {
		return err
	}
	c, err := w.tiled("weighted_up_f32", up, l, l.own)
	l.down, l.again, l.up = []call{begin, restriction}, []call{again, restriction}, []call{c}
	return err
}

// prepareStreamed prepares the cycles of a coarser level whose rows stream through blocks.
func (w *weighted) prepareStreamed(l *level, restricts solver.Stripe, first, again, up weightedArg[float32]) error {
	for _, c := range []struct {
		to *[]call
		a  weightedArg[float32]
	}{{&l.down, first}, {&l.again, again}} {
		c.a.coarseLo, c.a.coarseHi = int32(restricts.Lo), int32(restricts.Hi)
		k, err := pipe(w, "weighted_down_rows_f32", c.a, l, l.left(), pipeSideDown, nineBytes)
		if err != nil {
			return err
		}
		*c.to = []call{k}
	}
	c, err := pipe(w, "weighted_up_rows_f32", up, l, l.own, pipeSideUp, nineBytes)
	l.up = []call{c}
	return err
}

// tiled returns a kernel that does the sweeps of one way in rows of a level, with an argument of its own.
func (w *weighted) tiled(name string, a weightedArg[float32], l *level, rows solver.Stripe) (call, error) {
	a.lo, a.hi = int32(rows.Lo), int32(rows.Hi)
	strips, blocks := blocksOf(l.Mesh.NX, rows, tileStepX, tileStepY)
	a.strips = int32(strips)
	f := w.functions[name]
	args, err := f.Args(&a)
	return call{f: f, args: args, blocks: blocks, threads: tileThreads, shared: tileBytes}, err
}

// productsOf returns the kernel of the scalar products of conjugate gradients.
func (w *weighted) productsOf(s *CG) (call, error) {
	l := w.levels[0]
	a := &productArg{level: argOf[float64](w, 0), u: l.u.origin(), x: s.x.origin(), p: s.p.origin(), sums: s.sums,
		unitShift: dotShift(w.layout.Magnitude), unitBits: multigrid.DotBits}
	if w.products = a; w.sets != nil {
		a.differences = 1
	}
	a.level.lo, a.level.hi = int32(l.own.Lo), int32(l.own.Hi)
	strips, blocks, part := w.partsOf(l, l.own, weightedProductStep)
	a.level.strips, a.level.blockRows = int32(strips), int32(part)
	f := w.functions["weighted_products"]
	args, err := f.Args(a)
	return call{f: f, args: args, blocks: blocks, threads: weightedProductThreads, shared: weightedProductBytes}, err
}

// completeCoarsest eliminates the equations of the coarsest level, whose arrays are those of the set-up.
func (w *weighted) completeCoarsest(ctx context.Context) error {
	level := len(w.levels) - 1
	m := w.levels[level].Mesh
	h := wideOf(w.levels[level])
	h.base = w.h
	var values [6][]float64 // the stencil, and h
	for i, f := range append(append([]field(nil), w.wide[level][:multigrid.Scaling-multigrid.Centre]...), h) {
		rows := make([]byte, 8*m.NX*m.NY)
		if err := w.read(ctx, f, level, 8*m.NX, solver.Stripe{Hi: m.NY}, rows); err != nil {
			return err
		}
		values[i] = make([]float64, m.NX*m.NY)
		solver.Float64.Decode(values[i], rows)
	}
	f, err := w.layout.NewFactors(func(x, y int) multigrid.Point {
		i := y*m.NX + x
		return multigrid.Point{C: values[0][i], E: values[1][i], S: values[2][i], SE: values[3][i], SW: values[4][i],
			In: values[5][i], Out: values[5][i]}
	})
	if err != nil {
		return err
	}
	return w.uploadFactors(f)
}
