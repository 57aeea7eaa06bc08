package multigrid

import (
	"runtime"
	"sync"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// copied is about the number of bytes that ofRows copies at a time.
const copied = 1 << 22

// reader copies rows of an array to dst.
type reader func(s solver.Stripe, dst []byte) error

// ofRows returns what f makes of each of the rows of a mesh, which read copies. All cores work on rows while the next
// ones are copied.
func ofRows[T any](mesh solver.Mesh, rows solver.Stripe, read reader, f func(values []float64) T) ([]T, error) {
	size := mesh.RowBytes()
	chunk := max(1, copied/size)
	made, decoded := make([]T, rows.Rows()), make([][]float64, runtime.GOMAXPROCS(0))
	var data [2][]byte
	var work sync.WaitGroup
	defer work.Wait()
	for lo := rows.Lo; lo < rows.Hi; lo += chunk {
		s := solver.Stripe{Lo: lo, Hi: min(lo+chunk, rows.Hi)}
		if data[0] == nil {
			data[0] = make([]byte, s.Rows()*size)
		}
		from := data[0][:s.Rows()*size]
		if err := read(s, from); err != nil {
			return nil, err
		}
		work.Wait()
		data[0], data[1] = data[1], data[0]
		work.Go(func() {
			_ = parallel.On(len(decoded), s.Rows(), func(k, i int) error { // never fails
				if decoded[k] == nil {
					decoded[k] = make([]float64, mesh.NX)
				}
				mesh.DType.Decode(decoded[k], from[i*size:][:size])
				made[s.Lo+i-rows.Lo] = f(decoded[k])
				return nil
			})
		})
	}
	return made, nil
}
