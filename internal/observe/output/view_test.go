package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"jacobi/solver"
)

// chunkRows yields rows whose bytes are their numbers, and tells of each copy.
type chunkRows struct {
	mesh   solver.Mesh
	copied func(s solver.Stripe) error
}

func (r chunkRows) CopyRows(_ context.Context, s solver.Stripe, dst []byte) error {
	for iy := s.Lo; iy < s.Hi; iy++ {
		copy(dst[(iy-s.Lo)*r.mesh.RowBytes():], bytes.Repeat([]byte{byte(iy)}, r.mesh.RowBytes()))
	}
	return r.copied(s)
}

// halfChunk is a mesh with chunks of two rows: the given number of whole chunks of interior rows, and one of half the
// size.
func halfChunk(whole int) (solver.Mesh, solver.Stripe) {
	m := solver.Mesh{NX: chunkBytes / 8, NY: 2*whole + 3, DType: solver.Float32}
	return m, m.Interior()
}

// Chunks are copied ahead of the uses, as far as there are buffers. Each use gets every row whole, in order and once,
// though another one lags behind.
func TestChunksAreCopiedAhead(t *testing.T) {
	m, s := halfChunk(chunksAhead + 2)
	copies := make(chan solver.Stripe, s.Rows())
	rows := chunkRows{m, func(s solver.Stripe) error { copies <- s; return nil }}
	var seen [2][]int
	use := func(u int) Use {
		return func(lo int, data []byte) error {
			for i := range len(data) / m.RowBytes() {
				want := bytes.Repeat([]byte{byte(lo + i)}, m.RowBytes())
				if !bytes.Equal(data[i*len(want):][:len(want)], want) {
					return fmt.Errorf("use %d: row %d has other values", u, lo+i)
				}
				seen[u] = append(seen[u], lo+i)
			}
			return nil
		}
	}
	slow := use(1)
	err := eachChunk(t.Context(), m, s, rows, use(0), func(lo int, data []byte) error {
		if lo == s.Lo {
			for range chunksAhead { // without copies ahead this waits for ever
				<-copies
			}
			if len(copies) > 0 {
				t.Error("a buffer was copied to while it was in use")
			}
		}
		return slow(lo, data)
	})
	var want []int
	for iy := s.Lo; iy < s.Hi; iy++ {
		want = append(want, iy)
	}
	if err != nil || !slices.Equal(seen[0], want) || !slices.Equal(seen[1], want) {
		t.Errorf("rows %v, %v; want %v", seen, err, want)
	}
}

// An error ends the copies and the use that has it. Errors of uses come before those of copies, which are ahead.
func TestChunksEndWithAnError(t *testing.T) {
	m, s := halfChunk(2)
	broken, full := errors.New("broken"), errors.New("full")
	for name, c := range map[string]struct {
		copyAt, useAt int // the row of the chunk that fails
		want          error
		uses          string
	}{
		"copy":                    {3, -1, broken, "[1]"},
		"copy after a failed use": {3, 1, full, "[1]"},
		"last use":                {-1, 5, full, "[1 3 5]"},
		"context":                 {-1, -1, context.Canceled, "[1]"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		rows := chunkRows{m, func(s solver.Stripe) error {
			if s.Lo == c.copyAt {
				return broken
			}
			if c.want == context.Canceled {
				cancel()
			}
			return nil
		}}
		var uses []int
		err := eachChunk(ctx, m, s, rows, func(lo int, _ []byte) error {
			uses = append(uses, lo)
			if lo == c.useAt {
				return full
			}
			return nil
		}, func(int, []byte) error { return nil })
		if !errors.Is(err, c.want) || fmt.Sprint(uses) != c.uses {
			t.Errorf("%s: chunks %v, error %v; want %s, %v", name, uses, err, c.uses, c.want)
		}
		cancel()
	}
}
