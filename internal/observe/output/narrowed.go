package output

import (
	"encoding/binary"
	"fmt"
	"math"

	"jacobi/solver"
)

// Float32 rounds values of float64 to float32 and appends them to dst, which may be rows[:0]. A finite value beyond the
// range of float32 becomes an infinity; the error names the first one.
func Float32(dst, rows []byte) ([]byte, error) {
	var beyond error
	for ; len(rows) >= 8; rows = rows[8:] {
		v := math.Float64frombits(binary.LittleEndian.Uint64(rows))
		f := float32(v)
		if beyond == nil && math.IsInf(float64(f), 0) && !math.IsInf(v, 0) {
			beyond = fmt.Errorf("%g is beyond float32", v)
		}
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(f))
	}
	return dst, beyond
}

// narrower makes rows of a field those of its file.
type narrower struct {
	from, to solver.DType
	buf      []byte
}

// narrower returns the narrower of a file.
func (f Format) narrower() narrower { return narrower{from: f.From, to: f.DType} }

// rows returns rows as they stand in the file. The result is valid until the next call.
func (n *narrower) rows(rows []byte) ([]byte, error) {
	if n.from == n.to {
		return rows, nil
	}
	var err error
	n.buf, err = Float32(n.buf[:0], rows)
	return n.buf, err
}
