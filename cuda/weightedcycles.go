package cuda

import (
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
	l, p := w.levels[0], w.points[0]
	restricts := w.restricts(w.levels[1])
	down := withWeights(argOf[float64](w, 0), false)
	down.from, down.to, down.scale = l.u.origin(), l.v.origin(), 1/down.scale
	down.coarseLo, down.coarseHi = int32(restricts.Lo), int32(restricts.Hi)
	c, err := w.pipe("weighted_down_f64", down, l.left(), pipeSideDown)
	if err != nil {
		return err
	}
	p.down, p.again = []call{c}, []call{c}
	up := withWeights(argOf[float64](w, 0), true)
	up.from, up.to = l.v.origin(), l.u.origin()
	p.up, err = w.pipe("weighted_up_f64", up, l.own, pipeSideUp)
	return err
}

// partsOf returns how blocks that go down the rows of strips of columns divide level 0: the strips, the blocks in all
// and the rows of a block, in whole groups. Few rows make work for all multiprocessors, many save the first ones.
func (w *weighted) partsOf(rows solver.Stripe, step int) (strips, blocks, part int) {
	nx := w.levels[0].Mesh.NX
	strips = (nx + step - 1) / step
	part = rows.Rows() * strips / (pipeTurns * pipeBlocks * w.dev.gpu.SMs)
	part = min(max(part/solver.GroupRows*solver.GroupRows, 4*solver.GroupRows), pipeMost)
	strips, blocks = blocksOf(nx, rows, step, part)
	return strips, blocks, part
}

// pipe returns a kernel that does the sweeps of one way in rows of level 0, whose strips have some columns at each side
// that serve the others.
func (w *weighted) pipe(name string, a weightedArg[float64], rows solver.Stripe, side int) (call, error) {
	l := w.levels[0]
	a.lo, a.hi, a.countLo, a.countHi = int32(rows.Lo), int32(rows.Hi), int32(l.own.Lo), int32(l.own.Hi)
	strips, blocks, part := w.partsOf(rows, pipeThreads-2*side)
	a.strips, a.blockRows = int32(strips), int32(part)
	f := w.functions[name]
	if err := f.SetDynamicShared(pipeBytes); err != nil {
		return call{}, err
	}
	args, err := f.Args(&a)
	return call{f: f, args: args, blocks: blocks, threads: pipeThreads, shared: pipeBytes}, err
}

// prepareCoarser prepares the cycles of another level.
func (w *weighted) prepareCoarser(level int) error {
	l, next, p := w.levels[level], w.levels[level+1], w.points[level]
	a := withWeights(argOf[float32](w, level), false)
	a.from, a.to = l.u.origin(), l.v.origin()
	again, err := w.tiled("weighted_down_f32", a, l, l.left())
	if err != nil {
		return err
	}
	a.from = 0
	first, err := w.tiled("weighted_down_f32", a, l, l.left())
	if err != nil {
		return err
	}
	a.from = l.v.origin()
	restriction, err := kernelFor(w, "weighted_restrict_f32", a, next.Mesh.NX, w.restricts(next))
	if err != nil {
		return err
	}
	p.down, p.again = []call{first, restriction}, []call{again, restriction}
	a = withWeights(a, true)
	a.to = l.u.origin()
	p.up, err = w.tiled("weighted_up_f32", a, l, l.own)
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
	a.level.lo, a.level.hi = int32(l.own.Lo), int32(l.own.Hi)
	strips, blocks, part := w.partsOf(l.own, weightedProductStep)
	a.level.strips, a.level.blockRows = int32(strips), int32(part)
	f := w.functions["weighted_products"]
	args, err := f.Args(a)
	return call{f: f, args: args, blocks: blocks, threads: weightedProductThreads, shared: weightedProductBytes}, err
}

// down does Down on a level, beginning with u or with 0.
func (w *weighted) down(level int, fromU bool) error {
	p := w.points[level]
	if fromU {
		return launchAll(w.stream, p.again)
	}
	return launchAll(w.stream, p.down)
}

// cycles does the cycle of a level that is held as a whole, and does it twice where the plan has it.
func (w *weighted) cycles(level int) error {
	if level == len(w.levels)-1 {
		return w.coarsest.call.launch(w.stream)
	}
	for i := range w.layout.Plan.Times(level) {
		if err := w.down(level, i > 0); err != nil {
			return err
		}
		if err := w.cycles(level + 1); err != nil {
			return err
		}
		if err := w.points[level].up.launch(w.stream); err != nil {
			return err
		}
	}
	return nil
}
