package output

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"jacobi/solver"
)

// A chunk is a buffer in which rows are copied from a field to its outputs. There are at most chunksAhead.
const (
	leastChunk  = 2 << 20 // bytes
	chunksAhead = 4
)

// rowsOfChunk returns how many of the rows a chunk has: a sixteenth of them, but leastChunk at least and 512 KiB for
// each core at most. That bound is 4 MiB on few cores and 8 MiB on many. A chunk has one row at least.
func rowsOfChunk(m solver.Mesh, rows int) int {
	most := min(max(4<<20, runtime.GOMAXPROCS(0)<<19), 8<<20)
	return min(max(1, min(max(leastChunk, rows*m.RowBytes()/16), most)/m.RowBytes()), rows)
}

// Use is something that is done with dense rows of the mesh, which begin at row lo: whole, in order, once each. It must
// not keep or change them.
type Use func(lo int, rows []byte) error

// View is one rank's part of the whole mesh: the rows of its stripe and some boundary rows. The views of all ranks
// together contain each of the NY rows once.
//
// Row 0 of a fixed top belongs to the owner of row 1, and row NY-1 of a fixed bottom to the owner of row NY-2. With
// periodic top and bottom, row 0 is a copy of row NY-2 except in the columns of fixed walls and belongs to the owner of
// row NY-2; row NY-1 is a copy of row 1 and belongs to its owner. The row of a Neumann wall is one of the stripe's.
type View struct {
	Mesh    solver.Mesh
	Stripe  solver.Stripe
	Rows    solver.Rows
	Initial solver.RowSource // for the fixed values of rows 0 and NY-1
}

// Each calls each of uses with all rows of the view, a few MiB at a time, all of them at once. After an error, which it
// returns, a use is not called again.
func (v View) Each(ctx context.Context, uses ...Use) error {
	if err := v.boundary(ctx, 0, uses); err != nil {
		return err
	}
	if err := eachChunk(ctx, v.Mesh, v.Stripe, v.Rows, uses...); err != nil {
		return err
	}
	return v.boundary(ctx, v.Mesh.NY-1, uses)
}

// atBytes bounds a buffer in which rows are copied together.
const atBytes = 1 << 20

// At calls use with those of the rows, in ascending order, that belong to the view. Rows that follow each other are
// copied together.
func (v View) At(ctx context.Context, rows []int, use func(i int, row []byte)) error {
	size := v.Mesh.RowBytes()
	var buf []byte
	for i := 0; i < len(rows); {
		n, most := 0, min(max(1, atBytes/size), len(rows)-i)
		for n < most && rows[i+n] == rows[i]+n && rows[i+n] >= v.Stripe.Lo && rows[i+n] < v.Stripe.Hi {
			n++
		}
		if n == 0 { // a row of the boundary, or of another rank
			row, err := v.Boundary(ctx, rows[i])
			if err != nil {
				return err
			}
			if row != nil {
				use(i, row)
			}
			i++
			continue
		}
		if len(buf) < n*size {
			buf = make([]byte, n*size)
		}
		if err := v.Rows.CopyRows(ctx, solver.Stripe{Lo: rows[i], Hi: rows[i] + n}, buf[:n*size]); err != nil {
			return fmt.Errorf("copy row %d: %w", rows[i], err)
		}
		for k := range n {
			use(i+k, buf[k*size:(k+1)*size])
		}
		i += n
	}
	return nil
}

// boundary calls uses with boundary row iy if it belongs to the view.
func (v View) boundary(ctx context.Context, iy int, uses []Use) error {
	row, err := v.Boundary(ctx, iy)
	if err != nil || row == nil {
		return err
	}
	for _, use := range uses {
		if err := use(iy, row); err != nil {
			return err
		}
	}
	return nil
}

// Boundary returns boundary row iy, 0 or NY-1, or nil if the row does not belong to the view or is one of the stripe's.
func (v View) Boundary(ctx context.Context, iy int) ([]byte, error) {
	if interior := v.Mesh.Interior(); iy >= interior.Lo && iy < interior.Hi {
		return nil, nil
	}
	origin := min(max(iy, 1), v.Mesh.NY-2) // iy belongs to the owner of this row
	if v.Mesh.PeriodicRows() {
		origin, _ = v.Mesh.Canonical(iy)
	}
	if origin < v.Stripe.Lo || origin >= v.Stripe.Hi {
		return nil, nil
	}
	var now []byte
	if v.Mesh.PeriodicRows() {
		now = make([]byte, v.Mesh.RowBytes())
		if err := v.Rows.CopyRows(ctx, solver.Stripe{Lo: origin, Hi: origin + 1}, now); err != nil {
			return nil, fmt.Errorf("copy row %d: %w", origin, err)
		}
	}
	return v.Edge(iy, now)
}

// Edge returns boundary row iy, 0 or NY-1, whoever owns it. With periodic top and bottom, now is the row that it
// copies.
func (v View) Edge(iy int, now []byte) ([]byte, error) {
	row := make([]byte, v.Mesh.RowBytes())
	if err := v.Initial.Row(iy, row); err != nil {
		return nil, fmt.Errorf("boundary row %d: %w", iy, err)
	}
	if v.Mesh.PeriodicRows() {
		from, to, value := 0, len(row), v.Mesh.DType.Size()
		if v.Mesh.Walls.Left == solver.Dirichlet {
			from = value
		}
		if v.Mesh.Walls.Right == solver.Dirichlet {
			to -= value
		}
		copy(row[from:to], now[from:])
	}
	return row, nil
}

// chunk is dense rows from lo on, in a buffer that is used again once every use has done with it.
type chunk struct {
	lo   int
	rows []byte
	left atomic.Int32 // uses that are not done
}

// eachChunk calls each of uses with rows [s.Lo, s.Hi) in order, like View.Each. All uses go on at once, each at its own
// pace, while further chunks are copied from the field: in the goroutine of the caller, since a device may want all its
// copies from one.
func eachChunk(ctx context.Context, m solver.Mesh, s solver.Stripe, rows solver.Rows, uses ...Use) error {
	if len(uses) == 0 {
		return nil
	}
	height := rowsOfChunk(m, s.Rows())
	free, errs, queues := make(chan *chunk, chunksAhead), make([]error, len(uses)), make([]chan *chunk, len(uses))
	var failed atomic.Bool
	var using sync.WaitGroup
	for i, use := range uses {
		queues[i] = make(chan *chunk, chunksAhead)
		using.Go(func() {
			for c := range queues[i] {
				if errs[i] == nil {
					errs[i] = use(c.lo, c.rows)
				}
				if errs[i] != nil {
					failed.Store(true)
				}
				if c.left.Add(-1) == 0 {
					free <- c
				}
			}
		})
	}
	var err error
	for made, lo := 0, s.Lo; lo < s.Hi && err == nil && !failed.Load(); lo += height {
		part := solver.Stripe{Lo: lo, Hi: min(lo+height, s.Hi)}
		var c *chunk
		if made < chunksAhead {
			made++
			c = &chunk{rows: make([]byte, part.Rows()*m.RowBytes())}
		} else {
			c = <-free
		}
		c.lo, c.rows = lo, c.rows[:part.Rows()*m.RowBytes()]
		if err = ctx.Err(); err != nil {
			break
		}
		if err = rows.CopyRows(ctx, part, c.rows); err != nil {
			err = fmt.Errorf("copy rows %v: %w", part, err)
			break
		}
		c.left.Store(int32(len(uses)))
		for _, queue := range queues {
			queue <- c
		}
	}
	for _, queue := range queues {
		close(queue)
	}
	using.Wait()
	return cmp.Or(append(errs, err)...)
}

// fileOf returns the report of a file with these contents.
func fileOf(name string, data []byte) FileReport {
	sum := sha256.Sum256(data)
	return FileReport{Name: name, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
}
