package output

import (
	"encoding/binary"
	"fmt"
	"strings"

	"jacobi/configs"
	"jacobi/solver"
)

// vtiHead is the length of the head of a .vti file with the field alone. It holds every mesh and spacing, and aligns
// the rows. One with further arrays has twice that.
const vtiHead = 1024

// Ghosts is the array in which ParaView and VTK look for points that they are to leave out, marked with HiddenPoint.
const (
	Ghosts      = "vtkGhostType"
	HiddenPoint = 2
)

// vtiFormat returns the format of one VTK XML file of type ImageData (The VTK User's Guide, "VTK File Formats"). The
// rows are appended as raw bytes, those of each array after the number of these bytes. The point (ix, iy) is at
// x = ix hx, y = iy hy.
func vtiFormat(m solver.Mesh, hx, hy float64, arrays []configs.Array) Format {
	f := Format{Tail: []byte("\n</AppendedData>\n</VTKFile>\n"), From: m.DType, DType: m.DType}
	length := func(t solver.DType) uint64 { return uint64(m.NY) * uint64(m.NX) * uint64(t.Size()) }
	line := func(kind, name string, offset uint64) string {
		return fmt.Sprintf(`        <DataArray type="%s" Name="%s" format="appended" offset="%d"/>`+"\n", kind, name,
			offset)
	}
	real := fmt.Sprintf("Float%d", 8*m.DType.Size())
	size, offset, list := vtiHead, 8+length(m.DType), line(real, "u", 0)
	for _, a := range arrays {
		size = 2 * vtiHead
		p, kind := Plane{DType: m.DType}, real
		if a.Mask {
			p.DType, kind = Mask, "UInt8"
		}
		p.Head = binary.LittleEndian.AppendUint64(nil, length(p.DType))
		list += line(kind, a.Name, offset)
		offset += 8 + length(p.DType)
		f.Planes = append(f.Planes, p)
	}
	head := fmt.Sprintf(`<?xml version="1.0"?>
<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <ImageData WholeExtent="0 %[1]d 0 %[2]d 0 0" Origin="0 0 0" Spacing="%[3]v %[4]v 1">
    <Piece Extent="0 %[1]d 0 %[2]d 0 0">
      <PointData Scalars="u">
%[5]s      </PointData>
    </Piece>
  </ImageData>
`, m.NX-1, m.NY-1, hx, hy, list)
	const appended = `<AppendedData encoding="raw">` + "\n_"
	head += strings.Repeat(" ", size-8-len(appended)-len(head)) + appended
	f.Head = binary.LittleEndian.AppendUint64([]byte(head), length(m.DType))
	return f
}
