package halotest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"jacobi/halo"
	"jacobi/solver"
)

var runs atomic.Uint64

// FreshRun returns the id of a run that no other test has.
func FreshRun() halo.RunID { return halo.RunIDOf(fmt.Sprint("test ", runs.Add(1))) }

// FreshEnd returns the bottom end of rank 2, which faces rank 3, with halos of depth rows of nx float64 values. Its run
// is its own, so that no frame of one test reaches another.
func FreshEnd(nx, depth int) halo.End {
	return halo.End{Run: FreshRun(), Rank: 2, Neighbour: 3, Side: solver.Bottom, NX: nx, DType: solver.Float64,
		Send: solver.Stripe{Lo: 128 - depth, Hi: 128}, Recv: solver.Stripe{Lo: 128, Hi: 128 + depth}}
}

// Fill writes the rows of rank for exchange. Every value encodes its rank, exchange, row and column.
func Fill(dst []byte, rank int, rows solver.Stripe, nx int, exchange solver.ExchangeNumber) {
	for r := rows.Lo; r < rows.Hi; r++ {
		for c := range nx {
			v := uint64(rank)<<58 | uint64(exchange&0xffff)<<42 | uint64(r)<<24 | uint64(c)
			binary.LittleEndian.PutUint64(dst, v)
			dst = dst[8:]
		}
	}
}

// Verify returns an error that names the first value of got that differs from what Fill writes.
func Verify(got []byte, rank int, rows solver.Stripe, nx int, exchange solver.ExchangeNumber) error {
	want := make([]byte, len(got))
	Fill(want, rank, rows, nx, exchange)
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

// Play sends and receives count exchanges from first on at one end, as a rank does. It calls at, if not nil, before
// each.
func Play(ctx context.Context, l halo.Link, e halo.End, first, count solver.ExchangeNumber,
	at func(exchange solver.ExchangeNumber)) error {
	out, in := make([]byte, e.SendBytes()), make([]byte, e.RecvBytes())
	for b := first; b < first+count; b++ {
		if at != nil {
			at(b)
		}
		Fill(out, e.Rank, e.Send, e.NX, b)
		if err := l.Send(ctx, b, out); err != nil {
			return err
		}
		clear(out) // Send must have copied it
		if err := l.Recv(ctx, b, in); err != nil {
			return err
		}
		if err := Verify(in, e.Neighbour, e.Recv, e.NX, b); err != nil {
			return err
		}
	}
	return nil
}

// Both calls Play on both ends at once.
func Both(t *testing.T, a, b halo.Link, e halo.End, first, count solver.ExchangeNumber,
	at func(rank int, exchange solver.ExchangeNumber)) {
	t.Helper()
	if at == nil {
		at = func(int, solver.ExchangeNumber) {}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var wg sync.WaitGroup
	for i, l := range []halo.Link{a, b} {
		end := e
		if i == 1 {
			end = e.Facing()
		}
		wg.Go(func() {
			if err := Play(ctx, l, end, first, count,
				func(exchange solver.ExchangeNumber) { at(end.Rank, exchange) }); err != nil {
				t.Error(err)
				cancel(err)
			}
		})
	}
	wg.Wait()
}
