package exchangetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"jacobi/internal/compute/reference"
	"jacobi/solver"
)

// truth is a random field after each number of sweeps.
type truth struct {
	mesh   solver.Mesh
	rows   [][]byte // the initial field
	fields [][]byte // the interior after 0, 1, ... sweeps
}

// The largest value of a field is less than 1.
const magnitude solver.Magnitude = 0

func newTruth(m solver.Mesh, sweeps int) (*truth, error) {
	random := rand.New(rand.NewPCG(uint64(m.NY), uint64(m.DType)))
	f := &truth{mesh: m}
	for range m.NY {
		var row []byte
		for range m.NX {
			v := float32(2*random.Float64() - 1)
			if m.DType == solver.Float32 {
				row = binary.LittleEndian.AppendUint32(row, math.Float32bits(v))
			} else {
				row = binary.LittleEndian.AppendUint64(row, math.Float64bits(float64(v)))
			}
		}
		f.rows = append(f.rows, row)
	}
	oracle, err := reference.New(m, solver.Operator{}, f, magnitude)
	if err != nil {
		return nil, err
	}
	for len(f.fields) <= sweeps {
		if len(f.fields) > 0 {
			oracle.Sweep()
		}
		f.fields = append(f.fields, oracle.Rows(m.Interior()))
	}
	return f, nil
}

// Row implements solver.RowSource.
func (f *truth) Row(y int, dst []byte) error {
	copy(dst, f.rows[y])
	return nil
}

// equal returns an error that names the first row and column in which got differs from rows of the field after the
// given number of sweeps. The rows may lie in the halos of a periodic mesh.
func (f *truth) equal(got []byte, rows solver.Stripe, sweeps int) error {
	n := f.mesh.RowBytes()
	for y := rows.Lo; y < rows.Hi; y++ {
		c, ok := f.mesh.Canonical(y)
		if !ok {
			return fmt.Errorf("row %d is not of the mesh", y)
		}
		at := (c - f.mesh.Interior().Lo) * n
		g, w := got[(y-rows.Lo)*n:(y-rows.Lo+1)*n], f.fields[sweeps][at:at+n]
		if bytes.Equal(g, w) {
			continue
		}
		for x := range n {
			if g[x] != w[x] {
				return fmt.Errorf("after %d sweeps row %d differs, first in column %d", sweeps, y,
					x/f.mesh.DType.Size())
			}
		}
	}
	return nil
}
