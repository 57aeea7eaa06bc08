package cuda

import (
	"fmt"
	"slices"
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/solver/multigrid"
)

// tailArg is the argument of the kernels tail and tail_large: struct Tail in kernels/multigrid_tail.cuh.
type tailArg struct {
	weights, memory, outside, b, u driver.DevicePtr
	coarsest                       coarsestArg
	count, values                  int32
	levels                         [tailLevels]tailLevel
}

// tailLevel is struct TailLevel.
type tailLevel struct {
	at, around, restricting, correcting driver.DevicePtr
	h, q, gain                          float32
	points                              int32
}

const (
	tailThreads = 1024
	tailPoints  = 5 * tailThreads // of the first level that a block does, at most
	tailLevels  = 15              // in one argument
	tailValues  = 8192            // of all its levels in shared memory
)

// TailPoints takes the place of multigrid.TailPoints where every rank writes into the memory of every other. Then a
// gather costs less than dividing the larger levels saves.
const TailPoints = 1100 * 1100

// tail is the kernel for the coarsest levels with its arguments.
type tail struct {
	f      *driver.Function
	args   *driver.Args
	shared int
}

// tailStart returns the first level that one block does: all from there on fit into its shared memory, or it is the
// coarsest one.
func tailStart(l multigrid.Layout) int {
	start, values := len(l.Plan.Levels)-1, 0
	for i := start; i >= max(l.Agglomerated, len(l.Plan.Levels)-tailLevels); i-- {
		n := l.Plan.Levels[i].Mesh.NX * l.Plan.Levels[i].Mesh.NY
		values += n
		if n > tailPoints || values > tailValues {
			break
		}
		start = i
	}
	return start
}

// valuesOf returns the points of all levels.
func valuesOf(levels []multigrid.Level) (n int) {
	for _, l := range levels {
		n += l.Mesh.NX * l.Mesh.NY
	}
	return n
}

// openTail sets up the kernel for the levels from first on.
func (v *Levels) openTail(first int) (*tail, error) {
	levels := v.layout.Plan.Levels[first:]
	top := v.levels[first]
	a := &tailArg{b: top.b.base, u: top.u.base, count: int32(len(levels)), values: int32(valuesOf(levels))}
	all := newTailTables(v.layout, first)
	for i, l := range levels {
		t := &a.levels[i]
		*t = tailLevel{h: float32(l.Scale), q: float32(l.Blend), gain: float32(l.Gain), points: int32(len(all[i].at))}
		if err := all[i].upload(v.dev, t); err != nil {
			return nil, err
		}
	}
	var err error
	if a.outside, err = uploadTable(v.dev, all[0].outside(top)); err != nil {
		return nil, err
	}
	if a.weights, err = uploadTable(v.dev, tailWeights()); err != nil {
		return nil, err
	}
	if a.coarsest, err = v.openCoarsest(&all[len(all)-1]); err != nil {
		return nil, err
	}
	return v.loadTail(a)
}

// tailWeights returns the weights of the sweeps on the way down and on the way up.
func tailWeights() []float32 {
	down := multigrid.Weights()
	up := down
	slices.Reverse(up[:])
	var all []float32
	for _, w := range slices.Concat(down[:], up[:]) {
		all = append(all, float32(w))
	}
	return all
}

// loadTail returns the kernel with its arguments, and allocates memory if the arrays do not fit into that of a block.
func (v *Levels) loadTail(a *tailArg) (k *tail, err error) {
	k = &tail{shared: 3 * 4 * tailValues}
	name := "tail"
	if a.values > tailValues {
		k.shared, name = 0, "tail_large"
		if a.memory, err = v.dev.alloc(3 * 4 * int64(a.values)); err != nil {
			return nil, err
		}
	}
	if k.f, err = v.dev.module.Function(name); err != nil {
		return nil, err
	}
	if k.shared > v.dev.gpu.SharedBytes {
		return nil, fmt.Errorf("kernel %s: %d bytes of shared memory: the GPU has %d", name, k.shared,
			v.dev.gpu.SharedBytes)
	}
	if err := k.f.SetDynamicShared(k.shared); err != nil {
		return nil, err
	}
	k.args, err = k.f.Args(a)
	return k, err
}

func (t *tail) launch(s *driver.Stream) error {
	return t.f.Launch(s, driver.Dim{X: 1}, driver.Dim{X: tailThreads}, t.shared, t.args)
}

// tailMemory returns the bytes of GPU memory that the tail from level first on takes besides the arrays of that level.
func tailMemory(l multigrid.Layout, first int) int64 {
	bytes := 4*int64(len(tailWeights())) + coarsestMemory(l)
	for i, t := range newTailTables(l, first) {
		bytes += t.bytes()
		if i == 0 {
			bytes += int64(unsafe.Sizeof(t.at[0])) * int64(len(t.at))
		}
	}
	if values := valuesOf(l.Plan.Levels[first:]); values > tailValues {
		bytes += 3 * 4 * int64(values)
	}
	return bytes
}
