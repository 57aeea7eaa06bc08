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

// SweepReport has the speed of one backend alone, in updates of points a second.
type SweepReport struct {
	Device string  `json:"device"` // "GPU 0" or "CPU"
	Mesh   int     `json:"mesh"`   // rows and columns
	One    float64 `json:"one_sweep_a_pass"`
	Depth  int     `json:"sweeps"` // of a deep pass
	Deep   float64 `json:"deep_passes"`
	NotRun string  `json:"not_run,omitempty"`
	sum    solver.Sum
}

// sweepReport is the data of the part sweep.
type sweepReport struct {
	DType     string           `json:"dtype"`
	Sweeps    []SweepReport    `json:"sweeps"`
	Exchanges []ExchangeReport `json:"exchanges"`
}

// ripples is a field whose neighbouring values differ.
type ripples struct {
	mesh solver.Mesh
	row  []byte // of two periods, so that each row begins elsewhere
}

// period is the number of columns after which a row repeats, a prime.
const period = 1009

func newRipples(m solver.Mesh) ripples {
	r := ripples{mesh: m, row: make([]byte, 0, (m.NX+period)*m.DType.Size())}
	for i := range m.NX + period {
		v := math.Sin(float64(i%period) * 0.7)
		if m.DType == solver.Float32 {
			r.row = binary.LittleEndian.AppendUint32(r.row, math.Float32bits(float32(v)))
		} else {
			r.row = binary.LittleEndian.AppendUint64(r.row, math.Float64bits(v))
		}
	}
	return r
}

// Row implements solver.RowSource.
func (r ripples) Row(iy int, dst []byte) error {
	copy(dst, r.row[iy*37%period*r.mesh.DType.Size():])
	return nil
}

// sweep measures passes on every GPU alone, or on the CPU, and the exchange of halos between neighbours alone.
func sweep(ctx context.Context, m *Machine) (r Result, err error) {
	d := sweepReport{DType: m.DType, Sweeps: []SweepReport{}, Exchanges: []ExchangeReport{}}
	side := sweepGPU
	if m.NoGPU != nil {
		side = sweepCPU
		r.skip("GPUs: %v", m.NoGPU)
	}
	for i := range m.GPUs {
		if free := m.sweepRoom(i); free < side {
			side = free
		}
	}
	mesh := solver.Mesh{NX: side, NY: side, DType: solver.Float32}
	if m.DType == "float64" {
		mesh.DType = solver.Float64
	}
	l := solver.Layout{Mesh: mesh, Stripe: mesh.Interior(), Depth: 1, Magnitude: solver.MagnitudeOf(1)}
	reference, err := sweepCPUs(ctx, l, m.NoGPU != nil)
	if err != nil {
		return r, err
	}
	depth := reference.Depth
	if m.NoGPU != nil {
		d.Sweeps = append(d.Sweeps, reference)
	} else {
		depth = cuda.MaxSweeps(mesh)
		err = d.onGPUs(ctx, m, l, reference.sum, &r)
	}
	if err == nil {
		d.Exchanges, err = exchanges(ctx, m, depth*mesh.RowBytes(), &r)
	}
	d.judge(&r)
	r.Data, r.Text = d, d.text()
	return r, err
}

// sweepRoom returns the side of the largest mesh that GPU i has room for, a power of two.
func (m *Machine) sweepRoom(i int) int {
	free := m.GPUs[i].TotalBytes
	if c, err := m.GPUs[i].Retain(0); err == nil {
		if c.Bind() == nil {
			if n, _, err := c.Memory(); err == nil {
				free = n
			}
			_ = c.Unbind() // the next call that needs the context reports what is wrong with it
		}
		_ = c.Close()
	}
	side := sweepGPU
	for side > sweepLeast && 3*int64(side)*int64(side)*8 > free {
		side /= 2
	}
	return side
}

// onGPUs sweeps on every GPU. A GPU whose sums differ from the CPU's is a fault.
func (d *sweepReport) onGPUs(ctx context.Context, m *Machine, l solver.Layout, want solver.Sum, r *Result) error {
	var wrong []error
	for i := range m.GPUs {
		s := SweepReport{Device: fmt.Sprintf("GPU %d", m.GPUs[i].Index), Mesh: l.Mesh.NX, Depth: cuda.MaxSweeps(l.Mesh)}
		b, err := cuda.New(m.Driver, l, cuda.Options{Device: i, Sole: true})
		if err == nil {
			err = s.measure(ctx, b, l.Mesh, true)
			err = errors.Join(err, b.Close())
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			s.NotRun = err.Error()
			r.skip("%s: %v", s.Device, err)
		case s.sum != want:
			wrong = append(wrong, fmt.Errorf("%s computes another norm than the CPU", s.Device))
		}
		d.Sweeps = append(d.Sweeps, s)
	}
	return errors.Join(wrong...)
}

// sweepCPUs sweeps on all cores. Without timed it only computes the sum.
func sweepCPUs(ctx context.Context, l solver.Layout, timed bool) (s SweepReport, err error) {
	b, err := cpu.New(l, cpu.Options{Threads: runtime.GOMAXPROCS(0)})
	if err != nil {
		return s, err
	}
	s = SweepReport{Device: "CPU", Mesh: l.Mesh.NX, Depth: b.Limits().MaxSweeps}
	return s, errors.Join(s.measure(ctx, b, l.Mesh, timed), b.Close())
}

// measure does one sweep, whose sum it keeps, and then times passes.
func (s *SweepReport) measure(ctx context.Context, b solver.Backend, mesh solver.Mesh, timed bool) error {
	if err := b.Load(ctx, newRipples(mesh)); err != nil {
		return err
	}
	p := passes{backend: b}
	sums, err := p.do(ctx, 1, 1)
	if err != nil {
		return err
	}
	s.sum = sums[0]
	if !timed {
		return nil
	}
	points := float64(mesh.NX-2) * float64(mesh.NY-2)
	if s.One, err = p.fastest(ctx, 1, points); err == nil {
		s.Deep, err = p.fastest(ctx, s.Depth, points)
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

// judge adds figures, and GPUs that are slower than the others.
func (d sweepReport) judge(r *Result) {
	one, deep := map[int]float64{}, map[int]float64{}
	for i, s := range d.Sweeps {
		if s.NotRun != "" {
			continue
		}
		name := strings.ReplaceAll(strings.ToLower(s.Device), " ", "")
		r.add(s.One/1e9, "GLUP/s", "sweep.%s.one", name)
		r.add(s.Deep/1e9, "GLUP/s", "sweep.%s.deep", name)
		one[i], deep[i] = s.One, s.Deep
	}
	glups := func(v float64) string { return digits(v/1e9) + " GLUP/s" }
	r.compareIn("passes of one sweep", one, glups)
	r.compareIn("deep passes", deep, glups)
}

// text returns the tables of the part.
func (d sweepReport) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "device\tmesh, %s\tone sweep a pass\tmany sweeps a pass\n", d.DType)
	for _, s := range d.Sweeps {
		fmt.Fprintf(&b, "%s\t%d x %d\t%s GLUP/s\t%s GLUP/s, %d\n", s.Device, s.Mesh, s.Mesh, digits(s.One/1e9),
			digits(s.Deep/1e9), s.Depth)
	}
	text := table(b.String())
	for _, e := range d.Exchanges {
		text += fmt.Sprintf("  halos of %s between %s: %s\n", size(int64(e.Bytes)), e.Between, seconds(e.Seconds))
	}
	return text
}
