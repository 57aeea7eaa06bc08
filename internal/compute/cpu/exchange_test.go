package cpu

import (
	"context"
	"testing"

	"jacobi/solver"
	"jacobi/solver/exchangetest"
)

// The exchanges through the host's memory pass the conformance suite over links within a process.
func TestHostExchange(t *testing.T) {
	for name, background := range map[string]bool{"in turn": false, "background": true} {
		t.Run(name, func(t *testing.T) {
			exchangetest.Run(t, func(_ *testing.T, layouts []solver.Layout) exchangetest.Open {
				links := exchangetest.Links(layouts)
				return func(_ context.Context, rank int) (exchangetest.Rank, error) {
					l := layouts[rank]
					b, err := New(l, Options{Threads: 1})
					if err != nil {
						return exchangetest.Rank{}, err
					}
					x := solver.NewHostExchange(links[rank], solver.HostOptions{Background: background})
					halo := func(_ context.Context, side solver.Side, dst []byte) error {
						b.unpack(b.now, l.Halo(side), dst)
						return nil
					}
					return exchangetest.Rank{Backend: b, Exchange: x, Halo: halo}, nil
				}
			})
		})
	}
}
