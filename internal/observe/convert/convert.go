// Package convert writes the field of a finished run in another format: NumPy's .npy, VTK's .vti or a Zarr group. It
// streams: it holds a few MiB at a time, whatever the length of a row.
package convert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"jacobi/internal/base/show"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// Options say what the new file has that the old one does not.
type Options struct {
	Float32 bool // round values of float64

	// HX and HY are the spacings of the mesh. 0 takes those of the source, or 1 if it has none.
	HX, HY float64

	// ZarrFormat is that of a new Zarr group: 3, or 2 for readers that do not know it.
	ZarrFormat int
}

// target takes the values of a field in order.
type target interface {
	write(values []byte) error
	finish() error // makes what was written durable and gives it its name
	abort()
}

// Field converts the field in the file from to the file to. The names' endings choose the formats: .npy, .vti or
// .zarr. Nothing may exist under the new name.
func Field(ctx context.Context, from, to string, o Options) error {
	if err := convert(ctx, from, to, o); err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	return nil
}

// blockBytes is how much is read at a time: whole values.
const blockBytes = 8 << 20

func convert(ctx context.Context, from, to string, o Options) (err error) {
	s, err := open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.f.Close()) }()
	hx, hy := spacing(o.HX, s.hx), spacing(o.HY, s.hy)
	if err := checkSpacing(s.mesh, hx, hy); err != nil {
		return err
	}
	m := s.mesh
	if o.Float32 {
		m.DType = solver.Float32
	}
	t, err := create(to, m, hx, hy, o.ZarrFormat)
	if err != nil {
		return err
	}
	defer t.abort() // after finish, without effect
	part := make([]byte, blockBytes)
	for at, end := int64(0), int64(m.NY)*int64(s.mesh.RowBytes()); at < end; at += blockBytes {
		if err := ctx.Err(); err != nil {
			return err
		}
		part, row := part[:min(blockBytes, end-at)], at/int64(s.mesh.RowBytes())
		if _, err := s.f.ReadAt(part, s.data+at); err != nil {
			return fmt.Errorf("%s: read from row %d: %w", show.Text(from), row, err)
		}
		if m.DType != s.mesh.DType {
			if part, err = output.Float32(part[:0], part); err != nil {
				return fmt.Errorf("%s: row %d: %w", show.Text(from), row, err)
			}
		}
		if err := t.write(part); err != nil {
			return fmt.Errorf("%s: %w", show.Text(to), err)
		}
	}
	if err := t.finish(); err != nil {
		return fmt.Errorf("%s: %w", show.Text(to), err)
	}
	return nil
}

func spacing(asked, known float64) float64 {
	for _, h := range []float64{asked, known} {
		if h != 0 {
			return h
		}
	}
	return 1
}

// maxZarrSide bounds the sides of a mesh in a Zarr group, whose coordinates are made in memory, and whose chunks of
// format 2 are whole rows.
const maxZarrSide = 1 << 24

// create creates the file or group with this name.
func create(path string, m solver.Mesh, hx, hy float64, zarrFormat int) (target, error) {
	ending := strings.ToLower(filepath.Ext(path))
	if ending != ".npy" && ending != output.VTI && ending != output.Zarr {
		return nil, fmt.Errorf("%s: the name has to end in .npy, .vti or .zarr", show.Text(path))
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%s: a file of this name exists; remove it first", show.Text(path))
	}
	if ending == output.Zarr && max(m.NX, m.NY) > maxZarrSide {
		return nil, fmt.Errorf("%s: a mesh of %d x %d; convert writes Zarr groups with sides of at most %d points",
			show.Text(path), m.NX, m.NY, maxZarrSide)
	}
	if ending == output.Zarr && zarrFormat == 2 {
		return newGroup(path, m, hx, hy)
	}
	return newSingle(path, m, output.FormatOf(path, m, hx, hy))
}

// single is a field in one file, which for a Zarr group is that of its values. It has a hidden name until it is
// complete.
type single struct {
	f       *os.File
	path    string
	tail    []byte
	scratch *scratch
}

func newSingle(path string, m solver.Mesh, format output.Format) (*single, error) {
	size, err := format.Bytes(m)
	if err == nil {
		err = output.CheckSpace(filepath.Dir(path), size)
	}
	if err != nil {
		return nil, err
	}
	name, err := output.NewPartialName(filepath.Base(path), "convert")
	if err != nil {
		return nil, err
	}
	dir, err := newScratch(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir.dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		dir.close()
		return nil, err
	}
	t := &single{f: f, path: path, tail: format.Tail, scratch: dir}
	if _, err := f.Write(format.Head); err != nil {
		t.abort()
		return nil, err
	}
	return t, nil
}

func (t *single) write(values []byte) error {
	_, err := t.f.Write(values)
	return err
}

func (t *single) finish() error {
	_, err := t.f.Write(t.tail)
	if err == nil {
		err = t.f.Sync()
	}
	if err = errors.Join(err, t.f.Close()); err != nil {
		return err
	}
	if name := filepath.Base(t.path); strings.EqualFold(filepath.Ext(name), output.Zarr) {
		if err := output.PlaceGroup(t.scratch.dir, filepath.Base(t.f.Name()), name, 0); err != nil {
			return err
		}
		return os.Rename(filepath.Join(t.scratch.dir, name), t.path) // a directory replaces an empty one at most
	}
	return os.Link(t.f.Name(), t.path) // unlike Rename, it replaces nothing
}

func (t *single) abort() {
	_ = t.f.Close() // what is not in place is removed
	t.scratch.close()
}
