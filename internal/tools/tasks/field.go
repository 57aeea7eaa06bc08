package tasks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"jacobi/cuda"
	"jacobi/halo"
	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/method"
	"jacobi/internal/run/setup"
	"jacobi/internal/tools/soak"
	"jacobi/solver"
	"jacobi/solver/jacobi"
)

// field is a field that a soak sweeps: the whole mesh on this rank alone, or this rank's stripe of it.
type field struct {
	kind    soak.Kind
	layout  solver.Layout
	backend solver.Backend
	engine  *jacobi.Engine
	closes  []func() error // what was opened for it, in that order
}

func newField(kind soak.Kind, l solver.Layout, b solver.Backend, x solver.Exchange) (*field, error) {
	e, err := jacobi.New(b, x, &solver.Watch{}, jacobi.Options{Depth: l.Depth, MaxSweeps: l.MaxSweeps})
	if err != nil {
		return nil, err
	}
	return &field{kind: kind, layout: l, backend: b, engine: e}, nil
}

// close closes what was opened for the field, the newest first.
func (f *field) close() error { return closeAll(f.closes) }

func closeAll(closes []func() error) error {
	var errs []error
	for _, f := range slices.Backward(closes) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// openAlone opens the field of the whole mesh on this rank's GPU or, with the given options, on the CPU.
func (s *soaking) openAlone(ctx context.Context, onGPU bool, c cpu.Options) (f *field, err error) {
	var closes []func() error
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(closes))
		}
	}()
	mesh := s.Layout.Mesh
	depth, most := setup.DeviceOf(onGPU).Passes(mesh, s.Layout.Operator, mesh.Interior().Rows(), 1)
	if d := s.Config.Halo.Depth; d > 0 {
		depth = d
	}
	alone, err := setup.New(setup.Options{Mesh: mesh, Operator: s.Layout.Operator, Ranks: 1, MaxSweeps: most,
		Depth: setup.Depth{Rows: depth, Sweeps: depth}})
	if err != nil {
		return nil, err
	}
	whole := alone.Layout(0)
	whole.Magnitude = s.Layout.Magnitude
	links, err := halo.Connect(ctx, halo.Options{ // with itself, as a mesh with periodic rows needs
		Ends: halo.Ends(halo.RunIDOf(s.Comm.Self().RunID), mesh, []solver.Stripe{whole.Stripe}, whole.Depth, 0),
		Mode: halo.ModeAuto,
		NATS: halo.NATSOptions{Timeout: s.Config.Halo.Timeout},
	})
	if err != nil {
		return nil, err
	}
	closes = append(closes, links.Close)
	o := method.Options{Setup: alone, Layout: whole, CPU: c,
		OnClose: func(f func() error) { closes = append(closes, f) }}
	if onGPU {
		o.Driver = s.Driver
		o.GPU = cuda.Options{Device: s.GPU.Index, Sole: s.Sole, Timeout: s.Config.Halo.Timeout}
	}
	m, err := method.OpenSweeps(o)
	if err != nil {
		return nil, err
	}
	if err := m.Connect(links.Rows(), [2]*cuda.Window{}, nil); err != nil {
		return nil, err
	}
	if f, err = newField(soak.Alone, whole, m.Backend, m.Exchange); err != nil {
		return nil, err
	}
	f.closes = closes
	return f, nil
}

// sweep does the given number of sweeps from initial. It calls before with the sweeps done before each pass, and gives
// up, with false, where that returns true. All ranks of a ring must go on alike.
func (f *field) sweep(ctx context.Context, initial solver.RowSource, sweeps int, before func(sweeps int) bool) (
	bool, error) {
	if err := f.engine.Reload(ctx, initial); err != nil {
		return false, err
	}
	lag := f.backend.Limits().Lag
	var swept []solver.Pass // whose sums were not taken; they bound the passes that wait on a device
	take := func(keep int) error {
		for len(swept) > keep {
			if _, err := f.backend.Sums(ctx, swept[0]); err != nil {
				return fmt.Errorf("sweep %d: %w", swept[0].First, err)
			}
			swept = append(swept[:0], swept[1:]...)
		}
		return nil
	}
	for f.engine.Done() < sweeps {
		if before(f.engine.Done()) {
			return false, take(0)
		}
		p, err := f.engine.Advance(ctx, sweeps, sweeps)
		if err != nil {
			return false, err
		}
		swept = append(swept, p)
		if err := take(lag); err != nil {
			return false, err
		}
	}
	return true, take(0)
}

// makeReference computes, on rank 0, the hashes of the rows after all sweeps, and gives them to all ranks. The CPU
// computes them with all of the rank's cores, one time. stopped says that the rank was told to stop meanwhile.
func (s *soaking) makeReference(ctx context.Context) (stopped bool, err error) {
	var table []byte
	if s.Comm.Self().Rank == 0 {
		if table, err = s.computeReference(ctx); err != nil {
			return false, fmt.Errorf("reference: %w", err)
		}
	}
	if table, err = s.Comm.Broadcast(ctx, "reference", table); err != nil { // heartbeats bound the wait
		return false, err
	}
	s.reference = rowHashes{s.Layout.Mesh.Interior(), table}
	if want := s.reference.stripe.Rows(); len(table) != 0 && len(table) != want*sha256.Size {
		return false, fmt.Errorf("reference: %d bytes for %d rows", len(table), want)
	}
	return len(table) == 0, nil
}

// computeReference returns the hashes of the rows; nil if the rank was told to stop.
func (s *soaking) computeReference(ctx context.Context) (table []byte, err error) {
	f, err := s.openAlone(ctx, false, cpu.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	sweeps, stop, begin := s.Config.Solver.MaxIterations, s.StopRequested(), time.Now()
	watch := newWatch(s, nil, soak.Working{Of: sweeps})
	complete, err := f.sweep(ctx, s.Problem, sweeps, func(sweeps int) bool {
		watch.see(sweeps)
		return stop()
	})
	if err != nil || !complete {
		return nil, err
	}
	took := time.Since(begin).Seconds()
	hashes, err := hashRows(ctx, f.backend, f.layout, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	all := output.NewRowHashes(f.layout.Mesh)
	view := output.View{Mesh: f.layout.Mesh, Stripe: f.layout.Stripe, Rows: f.backend, Initial: s.Problem}
	if err := view.Each(ctx, all.Add); err != nil {
		return nil, err
	}
	field, err := output.FieldHash(f.layout.Mesh.NY, all.Parts(f.layout.Mesh.NY, roster.MaxMessage)...)
	if err != nil {
		return nil, err
	}
	s.tell(soak.Event{Event: "reference", Reference: &soak.Reference{Host: s.Comm.Self().Host, Sweeps: sweeps,
		Seconds: took, FieldHash: field}})
	return hashes.table, nil
}

// rowHashes are the SHA-256s of the rows of a stripe, one after the other.
type rowHashes struct {
	stripe solver.Stripe
	table  []byte
}

// of returns the SHA-256 of a row.
func (h rowHashes) of(row int) []byte { return h.table[(row-h.stripe.Lo)*sha256.Size:][:sha256.Size] }

// hashBytes bounds the buffer in which rows are copied from a device to be hashed.
const hashBytes = 32 << 20

// hashRows hashes the rows of the layout's stripe with the given number of threads.
func hashRows(ctx context.Context, rows solver.Rows, l solver.Layout, threads int) (rowHashes, error) {
	h := rowHashes{l.Stripe, make([]byte, l.Stripe.Rows()*sha256.Size)}
	size := l.Mesh.RowBytes()
	height := min(max(1, hashBytes/size), l.Stripe.Rows())
	buf := make([]byte, height*size)
	for lo := l.Stripe.Lo; lo < l.Stripe.Hi; lo += height {
		part := solver.Stripe{Lo: lo, Hi: min(lo+height, l.Stripe.Hi)}
		if err := rows.CopyRows(ctx, part, buf[:part.Rows()*size]); err != nil {
			return h, fmt.Errorf("copy rows %v: %w", part, err)
		}
		_ = parallel.On(threads, part.Rows(), func(_, i int) error { // none fails
			sum := sha256.Sum256(buf[i*size : (i+1)*size])
			copy(h.of(lo+i), sum[:])
			return nil
		})
	}
	return h, nil
}

// sum returns the SHA-256 of the table in hexadecimal digits.
func (h rowHashes) sum() string {
	sum := sha256.Sum256(h.table)
	return hex.EncodeToString(sum[:])
}

// differ returns the rows whose hashes are not those of the reference, which has all rows of h.
func (h rowHashes) differ(reference rowHashes) (differ []soak.Range) {
	for row := h.stripe.Lo; row < h.stripe.Hi; row++ {
		if !bytes.Equal(h.of(row), reference.of(row)) {
			differ = soak.Collect(differ, row)
		}
	}
	return differ
}

// flipped is a field with one wrong bit, in the middle of a row.
type flipped struct {
	solver.RowSource
	row int
}

// Row implements solver.RowSource. The bit is the second of the exponent: it makes 0 a small number and 1 another one.
func (f flipped) Row(iy int, dst []byte) error {
	err := f.RowSource.Row(iy, dst)
	if iy == f.row {
		dst[(len(dst)/16)*8+7] ^= 1 << 5 // the highest byte of a value of 4 or 8 bytes
	}
	return err
}
