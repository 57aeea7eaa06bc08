package output

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"jacobi/configs"
	"jacobi/solver"
)

// Format is what stands in the file of a field before and after its rows, and their type. The rows are dense,
// little-endian, in order.
type Format struct {
	Head, Tail []byte
	From       solver.DType // of the values of the field
	DType      solver.DType // of those in the file: the same, or float32
}

// VTI is the ending of the names of files in VTK's format for images.
const VTI = ".vti"

// FormatOf returns the format of a file by its name: VTK's ImageData for .vti, the values of a Zarr group for .zarr,
// else NumPy's .npy. hx and hy are the spacings of the mesh. The sizes of the format do not depend on
// them. The type is that of the mesh.
func FormatOf(name string, m solver.Mesh, hx, hy float64) Format {
	if strings.EqualFold(filepath.Ext(name), VTI) {
		return vtiFormat(m, hx, hy)
	}
	if isZarr(name) {
		return zarrFormat(m, hx, hy)
	}
	return Format{Head: npyHead(m), From: m.DType, DType: m.DType}
}

// FieldFormat returns the format of the field of a run.
func FieldFormat(o configs.Output, m solver.Mesh, hx, hy float64) Format {
	from := m.DType
	if o.Float32 {
		m.DType = solver.Float32
	}
	f := FormatOf(o.Field, m, hx, hy)
	f.From = from
	return f
}

// Bytes returns the size of a file of this format with the rows of the mesh.
func (f Format) Bytes(m solver.Mesh) (int64, error) {
	row, around := int64(m.NX)*int64(f.DType.Size()), int64(len(f.Head)+len(f.Tail))
	if int64(m.NY) > (math.MaxInt64-around)/row {
		return 0, fmt.Errorf("a mesh of %d x %d is too large for a file", m.NX, m.NY)
	}
	return around + int64(m.NY)*row, nil
}

// FieldBytes returns the size of the file of a field.
func FieldBytes(o configs.Output, m solver.Mesh) (int64, error) {
	return FieldFormat(o, m, 1, 1).Bytes(m)
}

// npyHead returns the header of a C-ordered (NY, NX) array in numpy format 1.0, padded to a multiple of 64 bytes.
func npyHead(m solver.Mesh) []byte {
	dict := fmt.Sprintf("{'descr': '<f%d', 'fortran_order': False, 'shape': (%d, %d), }", m.DType.Size(), m.NY, m.NX)
	const before = 10 // magic, version, length
	total := (before + len(dict) + 1 + 63) / 64 * 64
	b := append(make([]byte, 0, total), "\x93NUMPY\x01\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(total-before))
	b = append(b, dict...)
	b = append(b, strings.Repeat(" ", total-len(b)-1)...)
	return append(b, '\n')
}

// vtiHead is the length of the head of a .vti file. It holds every mesh and spacing, and aligns the rows.
const vtiHead = 1024

// vtiFormat returns the format of one VTK XML file of type ImageData (The VTK User's Guide, "VTK File Formats"). The
// rows are appended as raw bytes after the number of these bytes. The point (ix, iy) is at x = ix hx, y = iy hy.
func vtiFormat(m solver.Mesh, hx, hy float64) Format {
	head := fmt.Sprintf(`<?xml version="1.0"?>
<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <ImageData WholeExtent="0 %[1]d 0 %[2]d 0 0" Origin="0 0 0" Spacing="%[3]v %[4]v 1">
    <Piece Extent="0 %[1]d 0 %[2]d 0 0">
      <PointData Scalars="u">
        <DataArray type="Float%[5]d" Name="u" format="appended" offset="0"/>
      </PointData>
    </Piece>
  </ImageData>
`, m.NX-1, m.NY-1, hx, hy, 8*m.DType.Size())
	const appended = `<AppendedData encoding="raw">` + "\n_"
	head += strings.Repeat(" ", vtiHead-8-len(appended)-len(head)) + appended
	rows := uint64(m.NY) * uint64(m.RowBytes())
	return Format{
		Head: binary.LittleEndian.AppendUint64([]byte(head), rows),
		Tail: []byte("\n</AppendedData>\n</VTKFile>\n"), From: m.DType, DType: m.DType,
	}
}
