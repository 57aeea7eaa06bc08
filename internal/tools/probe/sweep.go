package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"jacobi/cuda"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/tools/probe/gpu"
	"jacobi/solver"
)

const (
	sweepGPU     = 8192 // rows and columns of the mesh on a GPU
	sweepCPU     = 4096
	sweepLeast   = 256
	sweepTries   = 3
	sweepSeconds = 0.1 // of one try
	sweepPasses  = 24  // of one try at most; a backend keeps the sums of that many
)

// swept is the speed of one backend alone, in updates of points a second.
type swept struct {
	device    string // "GPU 0" or "CPU"
	index     int    // CUDA's
	depth     int    // sweeps of a deep pass
	one, deep float64
	sum       solver.Sum // of the first sweep
}

// ripples is a field whose neighbouring values differ: a row of two periods, so that each row begins elsewhere.
type ripples struct {
	row  []byte
	size int // of a value
}

// period is the number of columns after which a row repeats, a prime.
const period = 1009

func newRipples(m solver.Mesh) ripples {
	r := ripples{size: m.DType.Size()}
	for i := range m.NX + period {
		if v := math.Sin(float64(i%period) * 0.7); m.DType == solver.Float32 {
			r.row = binary.LittleEndian.AppendUint32(r.row, math.Float32bits(float32(v)))
		} else {
			r.row = binary.LittleEndian.AppendUint64(r.row, math.Float64bits(v))
		}
	}
	return r
}

// Row implements solver.RowSource.
func (r ripples) Row(iy int, dst []byte) error {
	copy(dst, r.row[iy*37%period*r.size:])
	return nil
}

// sweep measures passes on every GPU alone, or on the CPU, and the exchange of halos between neighbours alone.
func sweep(ctx context.Context, m *Machine) (r Result, err error) {
	side := sweepGPU
	if m.NoGPU != nil {
		side = sweepCPU
		r.skip("GPUs: %v", m.NoGPU)
	}
	for i := range m.GPUs {
		_ = gpu.With(&m.GPUs[i], func(g *gpu.GPU) error { // what fails here fails below, too
			free, err := g.Room(1)
			for err == nil && side > sweepLeast && 3*int64(side)*int64(side)*8 > free {
				side /= 2
			}
			return err
		})
	}
	mesh := solver.Mesh{NX: side, NY: side, DType: solver.Float32}
	if m.DType == "float64" {
		mesh.DType = solver.Float64
	}
	l := solver.Layout{Mesh: mesh, Stripe: mesh.Interior(), Depth: 1, Magnitude: solver.MagnitudeOf(1)}
	b, err := cpu.New(l, cpu.Options{Threads: runtime.GOMAXPROCS(0)})
	if err != nil {
		return r, err
	}
	reference := swept{device: "CPU", depth: b.Limits().MaxSweeps}
	if err := errors.Join(reference.measure(ctx, b, mesh, m.NoGPU != nil), b.Close()); err != nil {
		return r, err
	}
	all, depth := []swept{reference}, reference.depth
	if m.NoGPU == nil {
		depth = cuda.MaxSweeps(mesh)
		all, err = sweepGPUs(ctx, m, l, reference.sum, &r)
	}
	r.judgeSweeps(fmt.Sprintf("mesh of %d x %d, %s", side, side, m.DType), all)
	if err == nil {
		err = r.exchanges(ctx, m, depth*mesh.RowBytes())
	}
	return r, err
}

// sweepGPUs sweeps on every GPU. A GPU whose sums differ from the CPU's is a fault.
func sweepGPUs(ctx context.Context, m *Machine, l solver.Layout, want solver.Sum, r *Result) (all []swept, err error) {
	for i := range m.GPUs {
		s := swept{device: fmt.Sprintf("GPU %d", m.GPUs[i].Index), index: m.GPUs[i].Index,
			depth: cuda.MaxSweeps(l.Mesh)}
		b, failed := cuda.New(m.Driver, l, cuda.Options{Device: i, Sole: true})
		if failed == nil {
			failed = errors.Join(s.measure(ctx, b, l.Mesh, true), b.Close())
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case failed != nil:
			r.skip("%s: %v", s.device, failed)
			continue
		case s.sum != want:
			err = errors.Join(err, fmt.Errorf("%s computes another norm than the CPU", s.device))
		}
		all = append(all, s)
	}
	return all, err
}

// measure does one sweep, whose sum it keeps, and then times passes if that is asked for.
func (s *swept) measure(ctx context.Context, b solver.Backend, mesh solver.Mesh, timed bool) error {
	if err := b.Load(ctx, newRipples(mesh)); err != nil {
		return err
	}
	p := passes{backend: b}
	sums, err := p.do(ctx, 1, 1)
	if err != nil {
		return err
	}
	if s.sum = sums[0]; !timed {
		return nil
	}
	points := float64(mesh.NX-2) * float64(mesh.NY-2)
	if s.one, err = p.fastest(ctx, 1, points); err == nil {
		s.deep, err = p.fastest(ctx, s.depth, points)
	}
	return err
}

// passes counts the passes of a backend.
type passes struct {
	backend solver.Backend
	next    solver.Pass
}

// do does n passes and returns the sums of the last one.
func (p *passes) do(ctx context.Context, n, sweeps int) (sums []solver.Sum, err error) {
	var last solver.Pass
	for range n {
		p.next.Sweeps = sweeps
		last = p.next
		if err := p.backend.Interior(ctx, last); err != nil {
			return nil, err
		}
		p.next.Index++
		p.next.First += sweeps
	}
	return p.backend.Sums(ctx, last)
}

// fastest returns how many points are updated a second in the fastest of several tries.
func (p *passes) fastest(ctx context.Context, sweeps int, points float64) (best float64, err error) {
	n := 1
	for range sweepTries {
		start := time.Now()
		if _, err := p.do(ctx, n, sweeps); err != nil {
			return 0, err
		}
		took := time.Since(start).Seconds()
		best = max(best, float64(n)*float64(sweeps)*points/took)
		n = min(sweepPasses, max(1, int(sweepSeconds*float64(n)/took)))
	}
	return best, nil
}

// judgeSweeps adds a table, figures, and GPUs that are slower than the others.
func (r *Result) judgeSweeps(title string, all []swept) {
	t := newTable(title, "device|one sweep a pass:GLUP/s|many sweeps a pass:GLUP/s|sweeps")
	one, deep := map[int]float64{}, map[int]float64{}
	for _, s := range all {
		name := strings.ReplaceAll(strings.ToLower(s.device), " ", "")
		one[s.index], deep[s.index] = s.one/1e9, s.deep/1e9
		r.add(s.one/1e9, "GLUP/s", "sweep.%s.one", name)
		r.add(s.deep/1e9, "GLUP/s", "sweep.%s.deep", name)
		t.row(s.device, s.one/1e9, s.deep/1e9, s.depth)
	}
	r.compare("passes of one sweep", "GLUP/s", one)
	r.compare("deep passes", "GLUP/s", deep)
	r.show(t)
}
