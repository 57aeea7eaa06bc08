package cpu

import (
	"fmt"
	"testing"

	"jacobi/solver"
	"jacobi/solver/backendtest"
)

// TestConformance runs the conformance suite over every kernel of this machine. The number of threads, the width of
// windows and whether ranks share cores vary from case to case.
func TestConformance(t *testing.T) {
	for _, kernel := range Kernels() {
		t.Run(kernel, func(t *testing.T) {
			n := 0
			backendtest.Run(t, func(l solver.Layout) (solver.Backend, error) {
				n++
				return New(l, Options{Threads: 1 + n%3, Kernel: kernel, Cache: 1 << (10 + n%7),
					ThreadsPerCore: 1 + n/3%2})
			})
		})
	}
}

// TestThreads runs some cases with more threads than there is work for.
func TestThreads(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 7} {
		for _, periodic := range []bool{false, true} {
			for _, c := range []backendtest.Case{
				{Mesh: solver.Mesh{NX: 2500, NY: 70, DType: solver.Float32, Walls: solver.WrapRows(periodic)}, Ranks: 1,
					Depth:  6,
					Passes: 1},
				{Mesh: solver.Mesh{NX: 90, NY: 120, DType: solver.Float64, Walls: solver.WrapRows(periodic)}, Ranks: 2,
					Depth:  4,
					Sweeps: 3, Passes: 1},
			} {
				t.Run(fmt.Sprintf("%d threads %v", threads, c), func(t *testing.T) {
					backendtest.RunCase(t, func(l solver.Layout) (solver.Backend, error) {
						return New(l, Options{Threads: threads})
					}, c)
				})
			}
		}
	}
}
