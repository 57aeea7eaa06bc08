package cpu

import (
	"context"
	"testing"

	"jacobi/solver"
	"jacobi/solver/exchangetest"
)

// The exchanges through the host's memory pass the conformance suite over links within a process.
func TestHostExchange(t *testing.T) {
	for name, open := range map[string]func(solver.HaloRows, solver.Layout, [2]solver.RowLink) (*solver.HostExchange,
		error){"in turn": solver.NewHostExchange, "overlapped": solver.NewOverlappedExchange} {
		t.Run(name, func(t *testing.T) {
			exchangetest.Run(t, func(_ *testing.T, layouts []solver.Layout) exchangetest.Open {
				links := exchangetest.Links(layouts)
				return func(_ context.Context, rank int) (exchangetest.Rank, error) {
					l := layouts[rank]
					b, err := New(l, Options{Threads: 1})
					if err != nil {
						return exchangetest.Rank{}, err
					}
					x, err := open(b, l, links[rank])
					halo := func(_ context.Context, side solver.Side, dst []byte) error {
						b.unpack(b.now, l.Halo(side), dst)
						return nil
					}
					return exchangetest.Rank{Backend: b, Exchange: x, Halo: halo}, err
				}
			})
		})
	}
}
