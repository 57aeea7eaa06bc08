package levels

import (
	"testing"

	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/leveltest"
)

// TestDevice runs the conformance suite with one thread and with three.
func TestDevice(t *testing.T) {
	for _, threads := range []int{1, 3} {
		leveltest.Run(t, func(l multigrid.Layout) (multigrid.Device, error) { return New(l, threads) })
	}
}
