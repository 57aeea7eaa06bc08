package cuda

import (
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/solver/multigrid"
)

// factorsArg is struct Factors in kernels/multigrid_coarsest.cuh.
type factorsArg struct {
	values               driver.DevicePtr
	count                int64
	slots, blocks, chain int32
	near                 int32
}

const coarsestThreads = 256 // of the kernel coarsest

// coarsestArg is the argument of the kernel coarsest: struct Coarsest.
type coarsestArg struct {
	factors             factorsArg
	place, copies, b, u driver.DevicePtr
	copied, _           int32
}

// openCoarsest allocates what the kernel for the coarsest level alone needs.
func (v *Levels) openCoarsest() (c call, err error) {
	l := v.levels[len(v.levels)-1]
	places, copies := unknownPlaces(l, v.layout.Blocking())
	u := uploads{dev: v.dev}
	a := &coarsestArg{place: table(&u, places), copies: table(&u, copies), b: l.b.base, u: l.u.base,
		copied: int32(len(copies))}
	if u.err != nil {
		return c, u.err
	}
	if a.factors, err = v.newFactors(v.dev.gpu.SharedBytes); err != nil {
		return c, err
	}
	if c, err = newCall(v.dev.module, "coarsest", a, coarsestThreads); err != nil {
		return c, err
	}
	c.blocks, c.shared = 1, int(a.factors.count)*8*int(a.factors.near)
	return c, c.f.SetDynamicShared(v.dev.gpu.SharedBytes) // Levels of other meshes share the kernel
}

// coarsestBytes returns the bytes of GPU memory that openCoarsest allocates.
func coarsestBytes(l multigrid.Layout) int64 {
	places, copies := unknownPlaces(newLevel(l, len(l.Plan.Levels)-1), l.Blocking())
	return l.FactorBytes() + 4*int64(len(places)) + 8*int64(len(copies))
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

// newFactors allocates the values for the coarsest level. A block has them in shared memory if they fit into room.
func (v *Levels) newFactors(room int) (a factorsArg, err error) {
	b, bytes := v.layout.Blocking(), v.layout.FactorBytes()
	a = factorsArg{count: bytes / 8, slots: int32(b.Slots), blocks: int32(b.Blocks), chain: int32(b.Chain)}
	if bytes <= int64(room) {
		a.near = 1
	}
	a.values, err = v.dev.alloc(bytes)
	v.factors = a.values
	return a, err
}

// uploadFactors copies the values to where newFactors has allocated them.
func (v *Levels) uploadFactors(f *multigrid.Factors) error {
	return v.dev.context.CopyToDevice(v.factors, unsafe.Slice((*byte)(unsafe.Pointer(&f.Values[0])), 8*len(f.Values)))
}
