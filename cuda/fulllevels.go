package cuda

import (
	"context"
	"errors"
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// fullThreads is the number of threads of a block of the kernels interpolate and restrict_source.
const fullThreads = 256

// interpolation is struct Interpolation in kernels/multigrid_full.cuh.
type interpolation struct {
	from, to, betweenRows, betweenColumns, fixed driver.DevicePtr
	pitch, fromPitch, fixedPitch                 int32
	nx, lo, hi                                   int32
	strips, segment                              int32
	columns, fromRows, fromColumns               span
}

// sourceRestriction is struct SourceRestriction.
type sourceRestriction struct {
	from, to, restricted, taps, fixed driver.DevicePtr
	gain                              float64
	pitch, toPitch, fixedPitch        int32
	nx, lo, hi                        int32
	strips                            int32
	fineY, coarseY                    int32
	rows, columns, toColumns          span
}

// Coarser implements multigrid.Device. The levels share the stream of v and are closed with it.
func (v *Levels) Coarser(l multigrid.Layout) (multigrid.Device, error) {
	c := &Levels{layout: l, dev: v.dev, stream: v.stream, kernels: v.kernels, pinned: v.pinned, arrived: v.arrived,
		busy: v.busy, within: true}
	err := c.checkLayout()
	if l.Plan.Weighted {
		err = errors.New("a weighted operator has no full multigrid")
	}
	if err == nil {
		c.counts, err = v.dev.alloc(sumBytes)
	}
	if err == nil {
		err = c.openLevels()
	}
	if err == nil {
		err = v.stream.Synchronize()
	}
	if err != nil {
		return nil, fmt.Errorf("cuda levels on device %d (%s): %w", v.dev.gpu.Index, v.dev.gpu.Name, err)
	}
	return c, nil
}

// finestOf returns the finest level of levels that Coarser returned.
func (v *Levels) finestOf(coarse multigrid.Device) (*level, error) {
	c, ok := coarse.(*Levels)
	if !ok || c.dev != v.dev {
		return nil, fmt.Errorf("cuda levels: %T does not share this device", coarse)
	}
	if m, want := c.levels[0].Mesh, v.levels[1].Mesh; m.NX != want.NX || m.NY != want.NY {
		return nil, fmt.Errorf("cuda levels: a mesh of %d x %d points, not %d x %d", m.NX, m.NY, want.NX,
			want.NY)
	}
	return c.levels[0], nil
}

// Interpolate implements multigrid.Device.
func (v *Levels) Interpolate(ctx context.Context, coarse multigrid.Device) error {
	from, err := v.finestOf(coarse)
	if err != nil {
		return err
	}
	l := v.levels[0]
	a := &interpolation{
		from: from.u.origin(), to: l.u.origin(),
		betweenRows: l.tables.betweenRows, betweenColumns: l.tables.betweenColumns,
		pitch: int32(l.u.pitch / 8), fromPitch: int32(from.u.pitch / 8),
		nx: int32(l.Mesh.NX), lo: int32(l.own.Lo), hi: int32(l.own.Hi),
		strips: int32(blocksFor(l.Mesh.NX)), segment: interpolatedRows,
		columns: l.columnSpan(), fromRows: from.rowSpan(), fromColumns: from.columnSpan(),
	}
	a.fixed, a.fixedPitch = l.fixedOrigin()
	segments := (l.own.Rows() + interpolatedRows - 1) / interpolatedRows
	return v.launchFull(ctx, "interpolate", int(a.strips)*segments, a)
}

// interpolatedRows is the number of rows that a block of the kernel interpolate does.
const interpolatedRows = 32

// RestrictSource implements multigrid.Device.
func (v *Levels) RestrictSource(ctx context.Context, coarse multigrid.Device) error {
	to, err := v.finestOf(coarse)
	if err != nil {
		return err
	}
	l, rows := v.levels[0], v.layout.Below()
	if !l.hasB || !to.hasB {
		return fmt.Errorf("cuda levels: no source")
	}
	a := &sourceRestriction{
		from: l.b.origin(), to: to.b.origin(), restricted: l.tables.restricted, taps: l.tables.taps, gain: l.Gain,
		pitch: int32(l.b.pitch / 8), toPitch: int32(to.b.pitch / 8),
		nx: int32(to.Mesh.NX), lo: int32(rows.Lo), hi: int32(rows.Hi), strips: int32(blocksFor(to.Mesh.NX)),
		fineY: int32(l.Y.Fine), coarseY: int32(l.Y.Coarse),
		rows: l.rowSpan(), columns: l.columnSpan(), toColumns: to.columnSpan(),
	}
	a.fixed, a.fixedPitch = l.fixedOrigin()
	return v.launchFull(ctx, "restrict_source", int(a.strips)*rows.Rows(), a)
}

// blocksFor returns the blocks for nx columns.
func blocksFor(nx int) int { return (nx + fullThreads - 1) / fullThreads }

// launchFull launches one of the kernels of full multigrid.
func (v *Levels) launchFull(ctx context.Context, name string, blocks int, argument any) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c, err := newCall(v.dev.module, name, argument, fullThreads)
	if err != nil {
		return err
	}
	c.blocks = blocks
	defer v.dev.times.begin(v.stream, solver.Work{Kind: solver.WorkInterpolate}).end()
	return c.launch(v.stream)
}

// fixedOrigin returns where the bits of row 0 are or would be, and the words of a row; 0 without fixed points inside.
func (l *level) fixedOrigin() (driver.DevicePtr, int32) {
	if l.fixed == 0 {
		return 0, 0
	}
	words := l.fixedWords()
	return l.fixed - driver.DevicePtr(int64(l.u.rows.Lo)*4*int64(words)), int32(words)
}
