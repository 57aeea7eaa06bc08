package output

import (
	"encoding/binary"
	"math"
	"slices"
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

// Values become the nearest float32. Those beyond it become infinite, and the first one is an error.
func TestFloat32(t *testing.T) {
	var rows []byte
	for _, v := range []float64{1, 0.1, -1e-50, math.Inf(1), 1e39, -1e40} {
		rows = binary.LittleEndian.AppendUint64(rows, math.Float64bits(v))
	}
	b, err := Float32(rows[:0], slices.Clone(rows))
	if err == nil || err.Error() != "1e+39 is beyond float32" {
		t.Errorf("error %v", err)
	}
	inf := math.Float32bits(float32(math.Inf(1)))
	want := []uint32{0x3f800000, 0x3dcccccd, 1 << 31, inf, inf, inf | 1<<31}
	for i, w := range want {
		if got := binary.LittleEndian.Uint32(b[4*i:]); got != w || len(b) != 4*len(want) {
			t.Errorf("value %d of %d bytes: %08x, want %08x", i, len(b), got, w)
		}
	}
	if _, err := Float32(nil, rows[:0]); err != nil {
		t.Error(err)
	}
}
