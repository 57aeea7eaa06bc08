package halo_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"jacobi/solver"

	"github.com/nats-io/nats-server/v2/server"
	. "jacobi/halo"
)

func BenchmarkExchange(b *testing.B) {
	s := serve(b, server.Options{MaxPayload: 8 << 20})
	tcp := func(streams int, encrypt bool) func(testing.TB, End, End, time.Duration) (Link, Link, error) {
		return overTCP(s, func(o *DirectOptions) {
			o.Streams, o.Encrypt, o.Trusted, o.NATS.AskAfter = streams, encrypt, !encrypt, 0
		})
	}
	for _, tr := range []transport{
		{Name: TransportMemory, Open: func(_ testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
			return NewMemory(a, b, timeout)
		}},
		{Name: TransportShared, Open: openShared},
		{Name: TransportDirect, Open: tcp(1, false)},
		{Name: TransportDirect + ", two sockets", Open: tcp(2, false)},
		{Name: TransportDirect + ", four sockets", Open: tcp(4, false)},
		{Name: TransportDirect + ", encrypted", Open: tcp(1, true)},
		{Name: TransportDirect + ", two sockets, encrypted", Open: tcp(2, true)},
		{Name: TransportDirect + ", four sockets, encrypted", Open: tcp(4, true)},
		{Name: TransportNATS, Open: func(t testing.TB, a, b End, timeout time.Duration) (Link, Link, error) {
			return openNATS(t, a, b, NATSOptions{Timeout: timeout}, s.connect(t), s.connect(t))
		}},
	} {
		for _, values := range []int{1, 1 << 10, 16 << 10, 128 << 10, 512 << 10} {
			b.Run(fmt.Sprintf("%s/%d", tr.Name, 8*values), func(b *testing.B) {
				e := freshEnd(values, 1)
				x, y := tr.Must(b, e, long)
				n := solver.ExchangeNumber(b.N)
				exchange := func(l Link) {
					rows := make([]byte, 8*values)
					for i := range n {
						if err := errors.Join(l.Send(b.Context(), i, rows), l.Recv(b.Context(), i, rows)); err != nil {
							b.Error(err)
							return
						}
					}
				}
				b.SetBytes(int64(16 * values))
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				wg.Go(func() { exchange(y) })
				exchange(x)
				wg.Wait()
			})
		}
	}
}
