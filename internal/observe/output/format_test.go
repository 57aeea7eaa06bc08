package output

import (
	"math"
	"strings"
	"testing"

	"jacobi/solver"
)

// The head of a .vti file has one length for all meshes and spacings, so that sizes are known before the spacings.
func TestHeadOfVTI(t *testing.T) {
	m := solver.Mesh{NX: 5, NY: 3, DType: solver.Float32}
	got := FormatOf("field.VTI", m, 0.25, 0.5)
	const want = `<?xml version="1.0"?>
<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <ImageData WholeExtent="0 4 0 2 0 0" Origin="0 0 0" Spacing="0.25 0.5 1">
    <Piece Extent="0 4 0 2 0 0">
      <PointData Scalars="u">
        <DataArray type="Float32" Name="u" format="appended" offset="0"/>
      </PointData>
    </Piece>
  </ImageData>
`
	const end = "<AppendedData encoding=\"raw\">\n_\x3c\x00\x00\x00\x00\x00\x00\x00"
	if head := string(got.Head); len(head) != 1024 || !strings.HasPrefix(head, want) || !strings.HasSuffix(head, end) ||
		strings.TrimSpace(head[len(want):len(head)-len(end)]) != "" {
		t.Errorf("head of %d bytes %q", len(head), head)
	}
	if tail := string(got.Tail); tail != "\n</AppendedData>\n</VTKFile>\n" {
		t.Errorf("tail %q", tail)
	}
	large := FormatOf("a.vti", solver.Mesh{NX: math.MaxInt32, NY: math.MaxInt32, DType: solver.Float64},
		math.SmallestNonzeroFloat64, math.MaxFloat64)
	if len(large.Head) != 1024 {
		t.Errorf("the head for a large mesh has %d bytes, want 1024", len(large.Head))
	}
}
