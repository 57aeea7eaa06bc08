package levels

import (
	"testing"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/leveltest"
)

// threads returns how many threads the tests of the i-th kernel use.
func threads(i int) int { return 1 + 2*(i%2) }

// needThreads leaves kernels with one thread out of short tests, which are those of the race detector.
func needThreads(t *testing.T, i int) {
	t.Helper()
	if testing.Short() && threads(i) == 1 {
		t.Skip("NOT RUN with -short: one thread races with nobody")
	}
}

// TestDevice runs the conformance suite with all kernels of this machine, and with one thread and three.
func TestDevice(t *testing.T) {
	for i, name := range kernel.Names() {
		t.Run(name, func(t *testing.T) {
			needThreads(t, i)
			leveltest.Run(t, func(l multigrid.Layout) (multigrid.Device, multigrid.CG, error) {
				d, err := New(l, threads(i), name)
				if err != nil {
					return nil, nil, err
				}
				return d, NewCG(d), nil
			})
		})
	}
}
