package cuda

import (
	"context"
	"encoding/binary"
	"math"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// factorsArg is struct Factors in kernels/weighted_coarsest.cuh.
type factorsArg struct {
	inverse, carry, ring, last, first  driver.DevicePtr
	scaling, place, copies, y, x, b, u driver.DevicePtr
	slots, blocks, chain, copied       int32
}

// weightedCoarsest solves the coarsest level of a weighted operator.
type weightedCoarsest struct {
	call
	arg factorsArg
}

// unknownPlaces returns the place of each point of the coarsest level in its arrays, by block and slot, and the places
// of the copies of points, each with the place that it copies.
func unknownPlaces(l *level, b multigrid.Blocking) (places []int32, copies [][2]int32) {
	m, pitch := l.Mesh, l.u.pitch/4
	at := func(y, x int) int32 { return int32(y*pitch + x) }
	for i := range b.Blocks * b.Slots {
		x, y := b.Point(i/b.Slots, i%b.Slots)
		places = append(places, at(y, x))
	}
	for y := range m.NY {
		for x := range m.NX {
			row, column := y, x
			if m.PeriodicColumns() {
				column = 1 + (x+m.NX-3)%(m.NX-2)
			}
			if m.PeriodicRows() {
				row, _ = m.Canonical(y)
			}
			if row != y || column != x {
				copies = append(copies, [2]int32{at(row, column), at(y, x)})
			}
		}
	}
	return places, copies
}

// openCoarsest allocates what the solution needs.
func (w *weighted) openCoarsest() (*weightedCoarsest, error) {
	l := w.levels[len(w.levels)-1]
	b := w.layout.Blocking()
	places, copies := unknownPlaces(l, b)
	k := &weightedCoarsest{arg: factorsArg{b: l.b.base, u: l.u.base, slots: int32(b.Slots), blocks: int32(b.Blocks),
		chain: int32(b.Chain), copied: int32(len(copies))}}
	a, n := &k.arg, int64(8*b.Slots*b.Blocks)
	matrix := 8 * int64(b.Slots*b.Slots)
	for _, m := range []struct {
		p     *driver.DevicePtr
		bytes int64
	}{{&a.inverse, int64(b.Blocks) * matrix}, {&a.carry, int64(b.Blocks) * matrix}, {&a.scaling, n}, {&a.y, n},
		{&a.x, n}, {&a.ring, int64(b.Chain) * matrix}, {&a.last, matrix}, {&a.first, matrix}} {
		if b.Chain == b.Blocks && (m.p == &a.ring || m.p == &a.last || m.p == &a.first) || m.bytes == 0 {
			continue
		}
		var err error
		if *m.p, err = w.dev.alloc(m.bytes); err != nil {
			return nil, err
		}
	}
	var err error
	if a.place, err = uploadTable(w.dev, places); err != nil {
		return nil, err
	}
	if a.copies, err = uploadTable(w.dev, copies); err != nil {
		return nil, err
	}
	f := w.functions["weighted_coarsest"]
	args, err := f.Args(a)
	k.call = call{f: f, args: args, blocks: 1, threads: warpSize}
	return k, err
}

// weightedCoarsestBytes returns the bytes of GPU memory that openCoarsest allocates.
func weightedCoarsestBytes(l multigrid.Layout) int64 {
	slots, blocks, bytes := l.FactorsSize()
	places, copies := unknownPlaces(newLevel(l, len(l.Plan.Levels)-1), l.Blocking())
	return bytes + 3*8*int64(slots*blocks) + 4*int64(len(places)) + 8*int64(len(copies))
}

// complete eliminates the equations of the coarsest level, whose arrays are those of the set-up.
func (k *weightedCoarsest) complete(ctx context.Context, w *weighted) error {
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
		for at := 0; at < len(rows); at += 8 {
			values[i] = append(values[i], math.Float64frombits(binary.LittleEndian.Uint64(rows[at:])))
		}
	}
	f, err := w.layout.NewFactors(func(x, y int) multigrid.Point {
		i := y*m.NX + x
		return multigrid.Point{C: values[0][i], E: values[1][i], S: values[2][i], SE: values[3][i], SW: values[4][i]}
	})
	if err != nil {
		return err
	}
	scaling := make([]float64, f.Blocks*f.Slots)
	for i := range scaling {
		x, y := f.Point(i/f.Slots, i%f.Slots)
		scaling[i] = values[5][y*m.NX+x]
	}
	for _, t := range []struct {
		to   driver.DevicePtr
		from []float64
	}{{k.arg.inverse, f.Inverse}, {k.arg.carry, f.Carry}, {k.arg.ring, f.Ring}, {k.arg.last, f.Last},
		{k.arg.first, f.First}, {k.arg.scaling, scaling}} {
		b := make([]byte, 0, 8*len(t.from))
		for _, v := range t.from {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		if err := w.dev.context.CopyToDevice(t.to, b); err != nil {
			return err
		}
	}
	return nil
}
