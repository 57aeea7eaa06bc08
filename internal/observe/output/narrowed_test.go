package output

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

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
