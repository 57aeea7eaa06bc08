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

// prepareWeighted prepares the cycles of a level.
func prepareWeighted[F float32 | float64](w *weighted, level int) error {
	l, next, p := w.levels[level], w.levels[level+1], w.points[level]
	a := argOf[F](w, level)
	weights := multigrid.Weights()
	for i, v := range weights {
		a.weights[i] = F(v)
	}
	a.from, a.to = l.u.origin(), l.v.origin()
	again, err := tiledCall(w, typed("down", level), a, l, l.left())
	if err != nil {
		return err
	}
	first := again
	if level > 0 { // from 0
		a.from = 0
		if first, err = tiledCall(w, typed("down", level), a, l, l.left()); err != nil {
			return err
		}
	}
	slices.Reverse(weights[:])
	for i, v := range weights {
		a.weights[i] = F(v)
	}
	a.from, a.to = l.v.origin(), l.u.origin()
	if p.up, err = tiledCall(w, typed("up", level), a, l, l.own); err != nil {
		return err
	}
	a.scale = 1 / a.scale
	restriction, err := kernelFor(w, typed("restrict", level), a, next.Mesh.NX, w.restricts(next))
	p.down, p.again = []call{first, restriction}, []call{again, restriction}
	return err
}

// tiledCall returns a kernel that does the sweeps of one way in rows of a level, with an argument of its own.
func tiledCall[F float32 | float64](w *weighted, name string, a weightedArg[F], l *level, rows solver.Stripe) (call,
	error) {
	a.lo, a.hi, a.countLo, a.countHi = int32(rows.Lo), int32(rows.Hi), int32(l.own.Lo), int32(l.own.Hi)
	strips, blocks := blocksOf(l.Mesh.NX, rows, tileStepX, tileStepY)
	a.strips = int32(strips)
	f := w.functions[name]
	args, err := f.Args(&a)
	return call{f: f, args: args, blocks: blocks, threads: tileThreads, shared: tileBytes(l.Mesh.DType)}, err
}

// productsOf returns the kernel of the scalar products of conjugate gradients.
func (w *weighted) productsOf(s *CG) (call, error) {
	l := w.levels[0]
	a := &productArg{level: argOf[float64](w, 0), u: l.u.origin(), x: s.x.origin(), p: s.p.origin(), sums: s.sums,
		unitShift: dotShift(w.layout.Magnitude), unitBits: multigrid.DotBits}
	a.level.lo, a.level.hi = int32(l.own.Lo), int32(l.own.Hi)
	strips, blocks := blocksOf(l.Mesh.NX, l.own, weightedProductThreads, weightedProductRows)
	a.level.strips = int32(strips)
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
		if err := w.points[level].up.launch(w.stream); err != nil {
			return err
		}
	}
	return nil
}
