package levels

import (
	"testing"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/leveltest"
)

// TestDevice runs the conformance suite with all kernels of this machine, and with one thread and three.
func TestDevice(t *testing.T) {
	for i, name := range kernel.Names() {
		t.Run(name, func(t *testing.T) {
			open := func(l multigrid.Layout) (multigrid.Device, error) { return New(l, 1+2*(i%2), name) }
			leveltest.Run(t, open)
			leveltest.RunFixed(t, open)
			leveltest.RunFull(t, open)
		})
	}
}

// TestCG runs the conformance suite of conjugate gradients with all kernels of this machine.
func TestCG(t *testing.T) {
	for i, name := range kernel.Names() {
		t.Run(name, func(t *testing.T) {
			leveltest.RunCG(t, func(l multigrid.Layout) (multigrid.Device, multigrid.CG, error) {
				d, err := New(l, 1+2*(i%2), name)
				if err != nil {
					return nil, nil, err
				}
				return d, NewCG(d), nil
			})
		})
	}
}

// TestWeighted runs the conformance suites of weighted operators with all kernels of this machine.
func TestWeighted(t *testing.T) {
	for i, name := range kernel.Names() {
		t.Run(name, func(t *testing.T) {
			open := func(l multigrid.Layout) (multigrid.Device, error) { return New(l, 1+2*(i%2), name) }
			leveltest.RunWeighted(t, open)
			leveltest.RunWeightedCG(t, func(l multigrid.Layout) (multigrid.Device, multigrid.CG, error) {
				d, err := New(l, 1+2*(i%2), name)
				if err != nil {
					return nil, nil, err
				}
				return d, NewCG(d), nil
			})
		})
	}
}
