package cuda

import (
	"context"
	"errors"
	"slices"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// load loads what the points of level 0 have of their own. The GPU computes that for all rows but the outer ones, if it
// follows from the coefficient.
func (w *weighted) load(ctx context.Context) error {
	l, p := w.levels[0], w.points[0]
	rows := l.u.rows
	hosted := []solver.Stripe{rows}
	if values, ok := w.layout.Values.(solver.Assembled); ok && rows.Rows() > 2 {
		if by, ok := values.Assembly(); ok {
			if err := w.assemble(ctx, by, solver.Stripe{Lo: rows.Lo + 1, Hi: rows.Hi - 1}); err != nil {
				return err
			}
			hosted = []solver.Stripe{{Lo: rows.Lo, Hi: rows.Lo + 1}, {Lo: rows.Hi - 1, Hi: rows.Hi}}
		}
	}
	for _, part := range hosted {
		if err := w.fill(ctx, w.valuesOf(p.centre, part, solver.Diagonal), w.valuesOf(p.east, part, solver.EastFace),
			w.valuesOf(p.south, part, solver.SouthFace), w.valuesOf(l.b, part, solver.Source)); err != nil {
			return err
		}
	}
	a := argOf[float64](w, 0)
	a.to = l.u.origin()
	c, err := kernelFor(w, "weighted_load", a, l.Mesh.NX, l.u.rows)
	if err != nil {
		return err
	}
	return c.launch(w.stream)
}

// valuesOf returns the upload of a value of the points of some rows.
func (w *weighted) valuesOf(to field, rows solver.Stripe, k solver.Value) upload {
	to.base, to.rows = to.at(rows.Lo), rows
	return newUpload(to, w.layout.Values, k)
}

// assemble has the GPU compute the values of rows from the coefficients. These lie in the second array of the field
// meanwhile, and the right-hand sides where the diagonals come. Loaded together, neither would repeat a row where the
// other does not.
func (w *weighted) assemble(ctx context.Context, by solver.Assembly, rows solver.Stripe) error {
	l := w.levels[0]
	if err := w.fill(ctx, newUpload(l.v, w.layout.Values, solver.Coefficient)); err != nil {
		return err
	}
	if err := w.fill(ctx, w.valuesOf(w.points[0].centre, rows, solver.RightHandSide)); err != nil {
		return err
	}
	a := assembly{level: argOf[float64](w, 0), hx: by.HX, hy: by.HY, unit: by.Unit}
	a.level.from = l.v.origin()
	c, err := pointKernel(w, "weighted_assemble", &a, &a.level, l.Mesh.NX, rows)
	if err != nil {
		return err
	}
	return c.launch(w.stream)
}

// run launches a kernel of the set-up.
func run[F float32 | float64](w *weighted, name string, a weightedArg[F], columns int, rows solver.Stripe) error {
	c, err := kernelFor(w, name, a, columns, rows)
	if err != nil {
		return err
	}
	return c.launch(w.stream)
}

// transfers computes P' of a level.
func (w *weighted) transfers(level int) error {
	next := w.levels[level+1]
	g := newGrid(next)
	rows := solver.Stripe{Lo: int(g.top), Hi: int(g.bottom)}
	return w.tiles("transfer", level, next, rows, setupColumns, setupRows, setupBytes(level))
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

// Coarsen implements multigrid.Device.
func (v *Levels) Coarsen(ctx context.Context, level int) error {
	w, err := v.settingUp(ctx)
	if err != nil {
		return err
	}
	return w.coarsen(level)
}

func (w *weighted) coarsen(level int) error {
	next := w.levels[level+1]
	return w.tiles("coarsen", level, next, w.restricts(next), setupColumns-2, setupRows-1,
		setupBytes(level)+setupPointsBytes)
}

// tiles is runTiles for a kernel of either type.
func (w *weighted) tiles(name string, from int, next *level, rows solver.Stripe, stepX, stepY, shared int) error {
	if from == 0 {
		return runTiles(w, typed(name, from), argOf[float64](w, from), next, rows, stepX, stepY, shared)
	}
	return runTiles(w, typed(name, from), argOf[float32](w, from), next, rows, stepX, stepY, shared)
}

// runTiles launches a kernel of the set-up whose blocks have some columns and rows of a level of their own.
func runTiles[F float32 | float64](w *weighted, name string, a weightedArg[F], l *level, rows solver.Stripe, stepX,
	stepY, shared int) error {
	if rows.Rows() <= 0 {
		return nil
	}
	a.lo, a.hi, a.strips = int32(rows.Lo), int32(rows.Hi), int32((l.Mesh.NX+stepX-1)/stepX)
	f := w.functions[name]
	args, err := f.Args(&a)
	if err != nil {
		return err
	}
	c := call{f: f, args: args, blocks: int(a.strips) * ((rows.Rows() + stepY - 1) / stepY), threads: pointThreads,
		shared: shared}
	return c.launch(w.stream)
}

// Scale implements multigrid.Device.
func (v *Levels) Scale(ctx context.Context, level int) error {
	w, err := v.settingUp(ctx)
	if err != nil {
		return err
	}
	return w.scale(level, w.levels[level].own, true)
}

// Complete implements multigrid.Device.
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
	if err := w.completeCoarsest(ctx); err != nil {
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
	return w.transfers(level)
}

// allocateSetUp allocates what the set-up needs.
func (w *weighted) allocateSetUp() error {
	piece := w.piece(&w.pieces)
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
	w.h, err = piece(most + slack)
	return err
}

// piece returns a function that allocates memory, which it adds to all.
func (w *weighted) piece(all *[]driver.DevicePtr) func(int64) (driver.DevicePtr, error) {
	return func(n int64) (driver.DevicePtr, error) {
		p, err := w.dev.context.Alloc(n)
		if err == nil {
			w.dev.bytes += n
			*all = append(*all, p)
		}
		return p, err
	}
}

// free frees pieces of memory.
func (w *weighted) free(all *[]driver.DevicePtr) error {
	var errs []error
	for _, p := range *all {
		errs = append(errs, w.dev.context.Free(p))
	}
	*all = nil
	return errors.Join(errs...)
}

// release frees what the set-up needs.
func (w *weighted) release() error {
	w.wide, w.setUp = nil, false
	return w.free(&w.pieces)
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

// kernelFor returns a kernel of the points of a level in rows, with an argument of its own.
func kernelFor[F float32 | float64](w *weighted, name string, a weightedArg[F], columns int, rows solver.Stripe) (call,
	error) {
	return pointKernel(w, name, &a, &a, columns, rows)
}

// pointKernel is kernelFor with an argument that has the one of a level in it.
func pointKernel[A any, F float32 | float64](w *weighted, name string, arg *A, a *weightedArg[F], columns int,
	rows solver.Stripe) (call, error) {
	a.lo, a.hi = int32(rows.Lo), int32(rows.Hi)
	a.strips = int32((columns + pointColumns - 1) / pointColumns)
	f := w.functions[name]
	args, err := f.Args(arg)
	if err != nil || rows.Rows() <= 0 {
		return call{}, err
	}
	return call{f: f, args: args, blocks: int(a.strips) * ((rows.Rows() + pointRows - 1) / pointRows),
		threads: pointThreads}, nil
}
