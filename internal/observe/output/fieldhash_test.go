package output

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"jacobi/solver"
)

// The hash of a field is that of the hashes of its rows, however they are spread and in whatever order they come.
func TestFieldHash(t *testing.T) {
	m := solver.Mesh{NX: 3, NY: 5, DType: solver.Float32}
	field, sums := make([]byte, m.NY*m.RowBytes()), []byte(nil)
	for iy := range m.NY {
		row := field[iy*m.RowBytes():][:m.RowBytes()]
		row[0] = byte(iy)
		sum := sha256.Sum256(row)
		sums = append(sums, sum[:]...)
	}
	want := fmt.Sprintf("%x", sha256.Sum256(sums))
	add := func(h *RowHashes, lo, hi int) {
		t.Helper()
		must(t, h.Add(lo, field[lo*m.RowBytes():hi*m.RowBytes()]))
	}
	first, second := NewRowHashes(m), NewRowHashes(m)
	add(first, 4, 5)
	add(first, 1, 2)
	add(second, 2, 4)
	add(second, 0, 1)
	whole := func(h *RowHashes) []byte { return h.Parts(m.NY, 1<<20)[0] }
	for size, n := range map[int]int{1 << 20: 1, 5 * rowHashBytes: 1, 2*rowHashBytes + 1: 3, rowHashBytes: 5} {
		one, two := first.Parts(m.NY, size), second.Parts(m.NY, size)
		got, err := FieldHash(m.NY, slices.Concat(one, two)...)
		if err != nil || got != want || len(one) != n || len(two) != n {
			t.Errorf("parts of %d bytes: %s of %d and %d parts, %v, want %s of %d", size, got, len(one), len(two), err,
				want, n)
		}
	}
	for want, parts := range map[string][][]byte{
		"hash of the field: 2 of 5 rows have come":                        {whole(first)},
		"hash of the field: row 4 of 5 has come twice, or is none":        {whole(first), whole(first)},
		"hash of the field: row 16909060 of 5 has come twice, or is none": {append([]byte{4, 3, 2, 1}, sums[:32]...)},
	} {
		if _, err := FieldHash(m.NY, parts...); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
