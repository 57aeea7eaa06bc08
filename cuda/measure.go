package cuda

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// The numbers of kernels/measure.cu.
const (
	measureThreads = 256 // of a block, each with the columns of a group
	measureRows    = 64  // of a block
	measureBytes   = measureThreads / 32 * sumBytes
)

// measureArg is struct Measure.
type measureArg struct {
	from, words          driver.DevicePtr
	bias                 [limbs]float64
	pitch                int32
	lo, hi, rowLo, rowHi int32
	strips               int32
}

// measure runs a kernel of the module measure over rows of a field on a mesh, and returns the words that it leaves.
// The words are those of the sum of the last Down(0), which are on the host already or on their way.
func (v *Levels) measure(ctx context.Context, kernel string, a measureArg, mesh solver.Mesh, rows solver.Stripe,
	shared int) ([]byte, error) {
	m, err := v.dev.context.Load(v.measures)
	if err != nil {
		return nil, err
	}
	columns := multigrid.OwnColumns(mesh)
	a.lo, a.hi = int32(columns.Lo), int32(columns.Hi)
	top := rows.Lo / solver.GroupRows * solver.GroupRows
	a.words, a.rowLo, a.rowHi = v.counts, int32(rows.Lo), int32(rows.Hi)
	a.strips = (a.hi + 4*measureThreads - 1) / (4 * measureThreads)
	k, err := newCall(m, kernel, &a, measureThreads)
	if err != nil {
		return nil, err
	}
	k.blocks, k.shared = int(a.strips)*((rows.Hi-top+measureRows-1)/measureRows), shared
	if err := v.stream.Fill(v.counts, 0, sumBytes); err != nil {
		return nil, err
	}
	timed := v.dev.times.begin(v.stream, solver.Work{Kind: solver.WorkSums})
	if err := k.launch(v.stream); err != nil {
		return nil, err
	}
	if err := v.stream.CopyFromDevice(v.dev.staging, 0, v.counts, sumBytes); err != nil {
		return nil, err
	}
	timed.end()
	return v.dev.staging.Bytes()[:sumBytes], v.await(ctx)
}

// Squares implements multigrid.Device.
func (v *Levels) Squares(ctx context.Context, e solver.Magnitude) (solver.Sum, error) {
	l := v.levels[0]
	a := measureArg{from: l.u.origin(), pitch: int32(l.u.pitch / 8), bias: biases(e)}
	words, err := v.measure(ctx, "squares_f64", a, l.Mesh, v.layout.Stripes[0], measureBytes)
	if err != nil {
		return solver.Sum{}, fmt.Errorf("cuda levels: squares: %w", err)
	}
	return decodeSum(words, make([]byte, sumBytes)), nil
}

// Largest implements multigrid.Device.
func (v *Levels) Largest(ctx context.Context, level int, s solver.Stripe) (float64, error) {
	width := v.layout.Plan.RowBytes(level, multigrid.Unknowns)
	f, err := v.array(level, multigrid.Unknowns, s, s.Rows()*width)
	if err != nil {
		return 0, err
	}
	return v.largest(ctx, *f, v.layout.Plan.Levels[level].Mesh, s)
}

// largest returns the largest absolute value in rows of a field on a mesh.
func (v *Levels) largest(ctx context.Context, f field, mesh solver.Mesh, rows solver.Stripe) (float64, error) {
	kernel := "largest_f64"
	if mesh.DType == solver.Float32 {
		kernel = "largest_f32"
	}
	a := measureArg{from: f.origin(), pitch: int32(f.pitch / mesh.DType.Size())}
	words, err := v.measure(ctx, kernel, a, mesh, rows, 0)
	if err != nil {
		return 0, fmt.Errorf("cuda levels: largest value: %w", err)
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(words)), nil
}
