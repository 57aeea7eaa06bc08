package halo_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	. "jacobi/halo"
	"jacobi/solver"
)

var runs atomic.Uint64

// freshRun returns the id of a run that no other test has.
func freshRun() RunID { return RunIDOf(fmt.Sprint("test ", runs.Add(1))) }

// freshEnd returns the bottom end of rank 2, which faces rank 3, with halos of depth rows of nx float64 values. Its run
// is its own, so that no frame of one test reaches another.
func freshEnd(nx, depth int) End {
	return End{Run: freshRun(), Rank: 2, Neighbour: 3, Side: solver.Bottom, NX: nx, DType: solver.Float64,
		Send: solver.Stripe{Lo: 128 - depth, Hi: 128}, Recv: solver.Stripe{Lo: 128, Hi: 128 + depth}}
}

// fillRows writes the rows of rank for exchange. Every value encodes its rank, exchange, row and column.
func fillRows(dst []byte, rank int, rows solver.Stripe, nx int, exchange solver.ExchangeNumber) {
	for r := rows.Lo; r < rows.Hi; r++ {
		for c := range nx {
			v := uint64(rank)<<58 | uint64(exchange&0xffff)<<42 | uint64(r)<<24 | uint64(c)
			binary.LittleEndian.PutUint64(dst, v)
			dst = dst[8:]
		}
	}
}

// verifyRows returns an error that names the first value of got that differs from what fillRows writes.
func verifyRows(got []byte, rank int, rows solver.Stripe, nx int, exchange solver.ExchangeNumber) error {
	want := make([]byte, len(got))
	fillRows(want, rank, rows, nx, exchange)
	if bytes.Equal(got, want) {
		return nil
	}
	for i := 0; i < len(got); i += 8 {
		if g, w := binary.LittleEndian.Uint64(got[i:]), binary.LittleEndian.Uint64(want[i:]); g != w {
			return fmt.Errorf("exchange %d, row %d, column %d: got rank %d exchange %d row %d column %d",
				exchange, rows.Lo+i/8/nx, i/8%nx, g>>58, g>>42&0xffff, g>>24&0x3ffff, g&0xffffff)
		}
	}
	return nil
}

// play sends and receives count exchanges from first on at one end, as a rank does. It calls at, if not nil, before
// each.
func play(ctx context.Context, l Link, e End, first, count solver.ExchangeNumber,
	at func(exchange solver.ExchangeNumber)) error {
	out, in := make([]byte, e.SendBytes()), make([]byte, e.RecvBytes())
	for b := first; b < first+count; b++ {
		if at != nil {
			at(b)
		}
		fillRows(out, e.Rank, e.Send, e.NX, b)
		if err := l.Send(ctx, b, out); err != nil {
			return err
		}
		clear(out) // Send must have copied it
		if err := l.Recv(ctx, b, in); err != nil {
			return err
		}
		if err := verifyRows(in, e.Neighbour, e.Recv, e.NX, b); err != nil {
			return err
		}
	}
	return nil
}

// both calls play on both ends at once.
func both(t *testing.T, a, b Link, e End, first, count solver.ExchangeNumber,
	at func(rank int, exchange solver.ExchangeNumber)) {
	t.Helper()
	if at == nil {
		at = func(int, solver.ExchangeNumber) {}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var wg sync.WaitGroup
	for i, l := range []Link{a, b} {
		end := e
		if i == 1 {
			end = e.Facing()
		}
		wg.Go(func() {
			if err := play(ctx, l, end, first, count,
				func(exchange solver.ExchangeNumber) { at(end.Rank, exchange) }); err != nil {
				t.Error(err)
				cancel(err)
			}
		})
	}
	wg.Wait()
}
