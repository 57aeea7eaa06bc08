package convert

import (
	"fmt"

	"jacobi/solver"
)

// Reader reads parts of the field in a .npy or a .vti file, or in a Zarr group. Several goroutines may call its methods
// at once.
type Reader struct{ s *source }

// Open opens the file of a field. Its name's ending chooses the format.
func Open(path string) (Reader, error) {
	s, err := open(path)
	return Reader{s}, err
}

// Mesh returns the mesh of the field, without walls.
func (r Reader) Mesh() solver.Mesh { return r.s.mesh }

// Spacing returns the distances between neighbouring points; 0 if the file does not have them.
func (r Reader) Spacing() (hx, hy float64) { return r.s.hx, r.s.hy }

// Row reads the columns [lo, lo + len(dst)/size) of a row of the mesh, where size is that of a value.
func (r Reader) Row(row, lo int, dst []byte) error {
	m := r.s.mesh
	if n := len(dst) / m.DType.Size(); row < 0 || row >= m.NY || lo < 0 || lo+n > m.NX {
		return fmt.Errorf("columns [%d, %d) of row %d: the mesh has %d x %d points", lo, lo+n, row, m.NX, m.NY)
	}
	at := r.s.data + int64(row)*int64(m.RowBytes()) + int64(lo*m.DType.Size())
	if _, err := r.s.f.ReadAt(dst, at); err != nil {
		return fmt.Errorf("read row %d: %w", row, err)
	}
	return nil
}

// Close closes the file.
func (r Reader) Close() error { return r.s.f.Close() }
