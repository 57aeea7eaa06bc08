package multigrid

import (
	"runtime"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// copied is about the number of bytes that ofRows copies at a time.
const copied = 1 << 22

// reader copies rows of an array to dst.
type reader func(s solver.Stripe, dst []byte) error

// ofRows returns what f makes of each of the rows of a mesh, which read copies. It uses all cores.
func ofRows[T any](mesh solver.Mesh, rows solver.Stripe, read reader, f func(values []float64) T) ([]T, error) {
	size := mesh.RowBytes()
	chunk := max(1, copied/size)
	data, made := make([]byte, min(chunk, rows.Rows())*size), make([]T, rows.Rows())
	for lo := rows.Lo; lo < rows.Hi; lo += chunk {
		s := solver.Stripe{Lo: lo, Hi: min(lo+chunk, rows.Hi)}
		if err := read(s, data[:s.Rows()*size]); err != nil {
			return nil, err
		}
		parts := min(s.Rows(), runtime.GOMAXPROCS(0))
		_ = parallel.Each(parts, func(k int) error { // never fails
			values := make([]float64, mesh.NX)
			for i := s.Rows() * k / parts; i < s.Rows()*(k+1)/parts; i++ {
				mesh.DType.Decode(values, data[i*size:][:size])
				made[s.Lo+i-rows.Lo] = f(values)
			}
			return nil
		})
	}
	return made, nil
}
