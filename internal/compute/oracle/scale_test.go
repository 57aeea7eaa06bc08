package oracle_test

import (
	"fmt"
	"math"
	"testing"
)

// Data of a weighted problem times a power of two take the same cycles, with or without aggregates, and have the field
// times that power, bit by bit, up to the limits of what is allowed.
func TestPowersOfTwo(t *testing.T) {
	for name, keys := range map[string]func(one float64) []string{
		"disc": func(one float64) []string {
			const disc = "hypot(x-0.5, y-0.5) < 0.2"
			return []string{"problem.fixed=" + disc, fmt.Sprintf("problem.initial=%s ? %g : 0", disc, one),
				"problem.coefficient=y < 0.3 ? 1e4 : 1"}
		},
		"walls": func(one float64) []string {
			return []string{fmt.Sprintf("problem.left=neumann(y*%g)", one), "problem.screening=3",
				fmt.Sprintf("problem.right=robin(2, %g)", one), fmt.Sprintf("problem.source=x*%g", one)}
		},
		"layers": func(one float64) []string {
			return []string{fmt.Sprintf("problem.left=%g", one), "problem.top=neumann(0)", "problem.bottom=neumann(0)",
				"problem.coefficient=mod(ix, 2) == 1 ? 1e6 : 1"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			solve := func(exponent int) outcome {
				keys := append(keys(math.Ldexp(1, exponent)), "grid.nx=65", "grid.ny=65", "solver.method=multigrid")
				o, err := run(t, 1, keys...)
				if err != nil {
					t.Fatal(err)
				}
				return o
			}
			one := solve(0)
			for _, exponent := range []int{-385, -250, 30, 250, 485} {
				o := solve(exponent)
				if o.Sweeps != one.Sweeps || o.StopReason != one.StopReason {
					t.Errorf("times 2^%d: %d cycles (%v), want %d (%v)", exponent, o.Sweeps, o.StopReason, one.Sweeps,
						one.StopReason)
				}
				for i, v := range o.field {
					if want := math.Ldexp(one.field[i], exponent); v != want {
						t.Fatalf("times 2^%d: value %d is %g, want %g", exponent, i, v, want)
					}
				}
			}
		})
	}
}
