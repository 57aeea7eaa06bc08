package solver

// Reader reads rows of a mesh that do not change, and knows some of them to be the same as the row above. What holds
// them then reads one and copies it.
type Reader struct {
	// Row writes row iy, 0 <= iy < NY, to dst. Several goroutines may call it at once.
	Row func(iy int, dst []byte) error
	// repeats reports whether row iy, 0 < iy < NY, is known to be row iy-1; nil if that is known of no row.
	repeats func(iy int) bool
}

// RowRepeater is a RowSource that knows repeated rows.
type RowRepeater interface {
	// RowRepeats reports whether row iy, 0 < iy < NY, is row iy-1, byte for byte. False is always allowed.
	RowRepeats(iy int) bool
}

// ValueRepeater is a ValueRows that knows repeated rows.
type ValueRepeater interface {
	// ValueRepeats reports the same of rows of value k.
	ValueRepeats(iy int, k Value) bool
}

// RowsOf returns a reader of the rows of a field.
func RowsOf(rows RowSource) Reader {
	r := Reader{Row: rows.Row}
	if known, ok := rows.(RowRepeater); ok {
		r.repeats = known.RowRepeats
	}
	return r
}

// ValuesOf returns a reader of a value of the points of an operator.
func ValuesOf(values ValueRows, k Value) Reader {
	r := Reader{Row: func(iy int, dst []byte) error { return values.ValueRow(iy, k, dst) }}
	if known, ok := values.(ValueRepeater); ok {
		r.repeats = func(iy int) bool { return known.ValueRepeats(iy, k) }
	}
	return r
}

// Repeats reports whether row y is the same as row y-1. Rows may lie in halos, as those of Mesh.Canonical.
func (r Reader) Repeats(m Mesh, y int) bool {
	if r.repeats == nil {
		return false
	}
	above, ok := m.Canonical(y - 1)
	here, exists := m.Canonical(y)
	return ok && exists && here == above+1 && r.repeats(here)
}
