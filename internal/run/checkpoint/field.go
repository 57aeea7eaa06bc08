package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"jacobi/solver"
)

// Field is the field of a checkpoint, and the initial field of a run that resumes from it.
type Field struct {
	m        Manifest
	files    []File           // by part; nil for parts from which this rank needs no row
	boundary solver.RowSource // for rows 0 and NY-1
}

// openField opens the parts that contain the rows in held, which may include halos.
func openField(ctx context.Context, s Store, found Found, held solver.Stripe, boundary solver.RowSource) (*Field,
	error) {
	f := &Field{m: found.Manifest, files: make([]File, len(found.Parts)), boundary: boundary}
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
