package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// ResumeOptions describe the run that resumes and the place of its checkpoints.
type ResumeOptions struct {
	Comm     *roster.Comm
	Place    string     // see configs.Checkpoint
	Conn     *nats.Conn // for a bucket; may be nil
	Problem  Problem
	Solver   configs.Solver
	Layout   solver.Layout    // of this rank
	Arrays   int              // see Manifest
	Boundary solver.RowSource // the initial field, for rows 0 and NY-1
	Log      *zap.Logger
}

// State is a checkpoint from which all ranks resume.
type State struct {
	Set   string
	Field *Field       // for Backend.Load; the caller closes it
	Start solver.Start // for solver.Options
	Norms []float64    // of all sweeps before the checkpoint; on rank 0 only
	First float64      // the first of them; 0 if there is none
	// Aggregates is that of the manifest.
	Aggregates int
}

// offer is rank 0's message to the other ranks: a checkpoint for all of them to inspect.
type offer struct {
	Set      string       `json:"set"`
	Manifest string       `json:"manifest"`
	Start    solver.Start `json:"start"`
	First    float64      `json:"first"` // as in State
}

// Resume finds the newest intact checkpoint and opens it. All ranks call Resume and agree on the checkpoint; each of
// them verifies a share of the parts. A broken checkpoint is named in the log, and the next older one is tried.
func Resume(ctx context.Context, o ResumeOptions) (*State, error) {
	store, only, err := Open(ctx, o.Place, o.Conn)
	if err != nil {
		return nil, err
	}
	var state *State
	if o.Comm.Self().Rank == 0 {
		state, err = o.lead(ctx, store, only)
	} else {
		state, err = o.follow(ctx, store)
	}
	if err != nil {
		return nil, fmt.Errorf("go on from %s: %w", store, err)
	}
	return state, nil
}

// lead runs on rank 0: it offers checkpoints, the newest first, until one is intact.
func (o *ResumeOptions) lead(ctx context.Context, store Store, only string) (*State, error) {
	found, faults, err := List(ctx, store, only)
	if err != nil {
		return nil, err
	}
	for _, f := range faults {
		o.Log.Warn("a checkpoint cannot be used: " + f)
	}
	for i, f := range found {
		if i == 0 {
			if err := f.CheckProblem(o.Problem); err != nil {
				return nil, err
			}
		}
		norms, fault := readNorms(ctx, store, f)
		if fault == nil {
			if err := f.CheckEnd(o.Solver, norms); err != nil {
				return nil, err
			}
			data, err := f.Encode()
			if err != nil {
				return nil, err
			}
			own := offer{Set: f.Set, Manifest: string(data), Start: solver.Start{Iterations: f.Sweeps,
				Norms: norms[max(0, len(norms)-solver.StopNorms):]}}
			if len(norms) > 0 {
				own.First = norms[0]
			}
			var state *State
			if state, fault, err = o.offer(ctx, store, own); err != nil {
				return nil, err
			}
			if fault == nil {
				state.Norms = norms
				return state, nil
			}
		}
		o.Log.Warn("a checkpoint cannot be used: " + f.Set + ": " + fault.Error())
		faults = append(faults, f.Set+": "+fault.Error())
	}
	return nil, noneIntact(faults)
}

// follow runs on the other ranks: it inspects the checkpoints that rank 0 offers until one is intact.
func (o *ResumeOptions) follow(ctx context.Context, store Store) (*State, error) {
	for {
		state, fault, err := o.offer(ctx, store, offer{})
		if err != nil || fault == nil {
			return state, err
		}
	}
}

// offer has all ranks inspect the checkpoint that rank 0 offers. A fault, the first one of all ranks, means that it is
// broken.
func (o *ResumeOptions) offer(ctx context.Context, store Store, own offer) (state *State, fault, err error) {
	of, err := roster.BroadcastOn(ctx, o.Comm, "checkpoint", own)
	if err != nil {
		return nil, nil, err
	}
	m, fault := DecodeManifest([]byte(of.Manifest))
	if fault == nil {
		state, fault = o.inspect(ctx, store, Found{of.Set, m}, of.Start, of.First)
	}
	text := ""
	if fault, err = firstFault(ctx, o.Comm, "checkpoint looked at", fault); fault != nil {
		text = fault.Error()
	}
	if err == nil {
		text, err = roster.BroadcastOn(ctx, o.Comm, "checkpoint judged", text)
	}
	if err == nil && text == "" {
		return state, nil, nil
	}
	if state != nil {
		err = errors.Join(err, state.Field.Close())
	}
	return nil, errors.New(text), err
}

// inspect verifies this rank's share of the parts of f, and opens the parts that its stripe needs.
func (o *ResumeOptions) inspect(ctx context.Context, store Store, f Found, start solver.Start,
	first float64) (*State, error) {
	self := o.Comm.Self()
	where := func(err error) error { return fmt.Errorf("rank %d on %s: %w", self.Rank, self.Host, err) }
	if f.Mesh != o.Layout.Mesh || f.Magnitude != o.Layout.Magnitude {
		return nil, where(fmt.Errorf("mesh %+v with magnitude %d, want %+v with %d", f.Mesh, f.Magnitude, o.Layout.Mesh,
			o.Layout.Magnitude))
	}
	if f.Arrays != o.Arrays {
		return nil, where(fmt.Errorf("%d arrays in a part, want %d: another version wrote it",
			max(1, f.Arrays), max(1, o.Arrays)))
	}
	for i := self.Rank; i < len(f.Parts); i += self.Size {
		if err := verifyPart(ctx, store, f, f.Parts[i]); err != nil {
			return nil, where(err)
		}
	}
	field, err := openField(ctx, store, f, o.Layout.Held(), o.Boundary)
	if err != nil {
		return nil, where(err)
	}
	return &State{Set: f.Set, Field: field, Start: start, First: first, Aggregates: f.Aggregates}, nil
}

func verifyPart(ctx context.Context, store Store, f Found, p Part) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	file, err := store.Open(ctx, f.Set, p)
	if err != nil {
		return fmt.Errorf("%s: %w", p.File, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		err = f.verify(p, file, info.Size())
	}
	if err != nil {
		return fmt.Errorf("%s is broken: %w", p.File, err)
	}
	return nil
}

func readNorms(ctx context.Context, store Store, f Found) ([]float64, error) {
	if err := verifyPart(ctx, store, f, f.Norms); err != nil {
		return nil, err
	}
	file, err := store.Open(ctx, f.Set, f.Norms)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return f.readNorms(file)
}

// firstFault tells rank 0 a rank's fault, if there is one. It returns the first fault of all ranks on rank 0, and the
// fault of the rank itself elsewhere. All ranks call it.
func firstFault(ctx context.Context, t *roster.Comm, name string, fault error) (first, err error) {
	text := ""
	if fault != nil {
		text = fault.Error()
	}
	faults, err := roster.GatherOn(ctx, t, name, text)
	for _, f := range faults {
		if f != "" {
			return errors.New(f), err
		}
	}
	return fault, err
}

// Field is the field of a checkpoint, and the initial field of a run that resumes from it.
type Field struct {
	m        Manifest
	files    []*os.File       // by part; nil for parts from which this rank needs no row
	boundary solver.RowSource // for rows 0 and NY-1
}

// openField opens the parts that contain the rows in held, which may include halos.
func openField(ctx context.Context, s Store, found Found, held solver.Stripe, boundary solver.RowSource) (*Field,
	error) {
	f := &Field{m: found.Manifest, files: make([]*os.File, len(found.Parts)), boundary: boundary}
	for y := held.Lo; y < held.Hi; y++ {
		row, ok := f.m.Mesh.Canonical(y)
		part := f.part(row)
		if !ok || part < 0 || f.files[part] != nil {
			continue
		}
		file, err := s.Open(ctx, found.Set, f.m.Parts[part])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", f.m.Parts[part].File, err), f.Close())
		}
		f.files[part] = file
	}
	return f, nil
}

// part returns the index of the part that contains a row, or -1 for a row outside the interior.
func (f *Field) part(row int) int {
	interior := f.m.Mesh.Interior()
	if row < interior.Lo || row >= interior.Hi {
		return -1
	}
	return sort.Search(len(f.m.Parts), func(i int) bool { return f.m.Parts[i].Hi > row })
}

// Row implements solver.RowSource for the rows that were given to openField.
func (f *Field) Row(iy int, dst []byte) error {
	part := f.part(iy)
	if part < 0 {
		return f.boundary.Row(iy, dst)
	}
	return f.row(0, part, iy, dst)
}

// Direction returns the second array, which is 0 in the rows of walls.
func (f *Field) Direction() solver.RowSource { return direction{f} }

type direction struct{ *Field }

// Row implements solver.RowSource.
func (d direction) Row(iy int, dst []byte) error {
	part := d.part(iy)
	if part < 0 {
		clear(dst)
		return nil
	}
	return d.row(1, part, iy, dst)
}

// row reads a row of an array from a part.
func (f *Field) row(array, part, iy int, dst []byte) error {
	p, file := f.m.Parts[part], f.files[part]
	if file == nil || len(dst) != f.m.Mesh.RowBytes() {
		return fmt.Errorf("checkpoint: row %d into %d bytes: not opened for it", iy, len(dst))
	}
	at := int64(array)*int64(p.Hi-p.Lo) + int64(iy-p.Lo)
	if _, err := file.ReadAt(dst, headerSize+at*int64(len(dst))); err != nil {
		return fmt.Errorf("checkpoint: row %d: %s: %w", iy, p.File, err)
	}
	return nil
}

// Close closes the parts.
func (f *Field) Close() error {
	var errs []error
	for i, file := range f.files {
		if file != nil {
			errs = append(errs, file.Close())
			f.files[i] = nil
		}
	}
	return errors.Join(errs...)
}
