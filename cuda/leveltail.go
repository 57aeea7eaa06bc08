package cuda

import (
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/solver/multigrid"
)

// tailArg is the argument of the kernel tail: struct Tail in kernels/multigrid_tail.cuh.
type tailArg struct {
	levels, weights, memory, b, u driver.DevicePtr
	count, sweeps, values, pitch  int32
	w                             [multigrid.Sweeps]float32
}

// tailLevel is struct TailLevel.
type tailLevel struct {
	tapsX, tapsY, betweenRows, betweenColumns driver.DevicePtr
	fixed                                     driver.DevicePtr
	rows, columns                             span
	h, q, gain                                float32
	nx, ny                                    int32
	u, v, b                                   int32
	_                                         int32
	_                                         int32
}

const (
	tailThreads = 1024
	tailPoints  = 2 * tailThreads // of the first level that a block does, at most
	tailBytes   = 96 << 10        // of shared memory
)

// tail is the kernel for the coarsest levels with its arguments.
type tail struct {
	f      *driver.Function
	args   *driver.Args
	shared int
}

// tailStart returns the first level that one block does: all from there on fit into its shared memory, or it is the
// coarsest one.
func tailStart(l multigrid.Layout) int {
	start, bytes := len(l.Plan.Levels)-1, 0
	for i := start; i >= l.Tail; i-- {
		m := l.Plan.Levels[i].Mesh
		bytes += 3 * 4 * m.NX * m.NY
		if m.NX*m.NY > tailPoints || bytes > tailBytes {
			break
		}
		start = i
	}
	return start
}

// tailValues returns the values of all arrays of the tail.
func tailValues(levels []multigrid.Level) (n int) {
	for _, l := range levels {
		n += 3 * l.Mesh.NX * l.Mesh.NY
	}
	return n
}

// openTail sets up the kernel for the levels from first on.
func (v *Levels) openTail(first int) (*tail, error) {
	levels := v.layout.Plan.Levels[first:]
	var table []tailLevel
	values := 0
	for i, l := range levels {
		m := l.Mesh
		n := m.NX * m.NY
		t := tailLevel{
			rows: newSpan(m.NY, m.Walls.Top, m.Walls.Bottom), columns: newSpan(m.NX, m.Walls.Left, m.Walls.Right),
			h: float32(l.Scale), q: float32(l.Blend), gain: float32(l.Gain), nx: int32(m.NX), ny: int32(m.NY),
			u: int32(values), v: int32(values + n), b: int32(values + 2*n),
		}
		values += 3 * n
		if v.layout.Fixed != nil {
			var err error
			if t.fixed, err = uploadTable(v.dev, tailBits(m, v.layout.Fixed[first+i])); err != nil {
				return nil, err
			}
		}
		if i+1 < len(levels) {
			if err := v.uploadTail(&t, l, levels[i+1]); err != nil {
				return nil, err
			}
		}
		table = append(table, t)
	}
	top := v.levels[first]
	a := &tailArg{b: top.b.base, u: top.u.base, count: int32(len(levels)), pitch: int32(top.u.pitch / 4)}
	for i, w := range multigrid.Weights() {
		a.w[i] = float32(w)
	}
	var weights []float32
	for _, w := range v.layout.Plan.Coarsest {
		weights = append(weights, float32(w))
	}
	a.sweeps = int32(len(weights))
	var err error
	if a.levels, err = uploadTable(v.dev, table); err != nil {
		return nil, err
	}
	if a.weights, err = uploadTable(v.dev, weights); err != nil {
		return nil, err
	}
	k := &tail{shared: 4 * tailValues(levels)}
	a.values = int32(tailValues(levels))
	if k.shared > tailBytes {
		if a.memory, err = v.dev.alloc(int64(k.shared)); err != nil {
			return nil, err
		}
		k.shared = 0
	}
	if k.f, err = v.dev.module.Function("tail"); err != nil {
		return nil, err
	}
	if k.shared > v.dev.gpu.SharedBytes {
		return nil, fmt.Errorf("kernel tail: %d bytes of shared memory: the GPU has %d", k.shared,
			v.dev.gpu.SharedBytes)
	}
	if err := k.f.SetDynamicShared(k.shared); err != nil {
		return nil, err
	}
	k.args, err = k.f.Args(a)
	return k, err
}

// uploadTail uploads the tables between two levels of the tail.
func (v *Levels) uploadTail(t *tailLevel, l, next multigrid.Level) (err error) {
	if t.tapsX, err = uploadTable(v.dev, tapsOf(l.X, l.Mesh.NX, next.Mesh.NX)); err != nil {
		return err
	}
	if t.tapsY, err = uploadTable(v.dev, tapsOf(l.Y, l.Mesh.NY, next.Mesh.NY)); err != nil {
		return err
	}
	if t.betweenRows, err = uploadTable(v.dev, betweenPoints(l.Y, l.Mesh.NY)); err != nil {
		return err
	}
	t.betweenColumns, err = uploadTable(v.dev, betweenPoints(l.X, l.Mesh.NX))
	return err
}

func (t *tail) launch(s *driver.Stream) error {
	return t.f.Launch(s, driver.Dim{X: 1}, driver.Dim{X: tailThreads}, t.shared, t.args)
}
