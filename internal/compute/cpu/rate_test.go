package cpu

import (
	"context"
	"errors"
	"testing"
	"time"

	"jacobi/solver"
)

// A rate comes from a stripe that is as small as one can be, that is cut, that lies at either wall or at none, and that
// has an operator. A run that has ended gets no rate.
func TestSweepRate(t *testing.T) {
	large := solver.Mesh{NX: 4096, NY: 4096, DType: solver.Float32}
	small := solver.Mesh{NX: 3, NY: 3, DType: solver.Float64}
	wide := solver.Mesh{NX: 1 << 17, NY: 64, DType: solver.Float64}
	for name, l := range map[string]solver.Layout{
		"small": {Mesh: small, Stripe: small.Interior(), Depth: 1},
		"upper": {Mesh: large, Stripe: solver.Stripe{Lo: 1, Hi: 2048}, Depth: 16, Neighbour: [2]bool{false, true}},
		"lower": {Mesh: large, Stripe: solver.Stripe{Lo: 2048, Hi: 4095}, Depth: 16, Neighbour: [2]bool{true, false}},
		"deep":  {Mesh: wide, Stripe: solver.Stripe{Lo: 16, Hi: 40}, Depth: 8, Neighbour: [2]bool{true, true}},
		"operator": {Mesh: large, Stripe: solver.Stripe{Lo: 1, Hi: 2048}, Depth: 4, Neighbour: [2]bool{false, true},
			Operator: solver.Operator{Scale: 0.5, Blend: 0.5, Values: wavy{large}, Fixed: wavy{large}}},
	} {
		t.Run(name, func(t *testing.T) {
			if rate, err := SweepRate(t.Context(), l, Options{Threads: 2}, l.Depth); err != nil || rate <= 0 {
				t.Errorf("%g points a second, %v", rate, err)
			}
			if rate, err := MeanRate(t.Context(), l, Options{Threads: 2}, l.Depth, time.Microsecond); err != nil ||
				rate <= 0 {
				t.Errorf("%g points a second over some time, %v", rate, err)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the run is over")
	cancel(cause)
	l := solver.Layout{Mesh: large, Stripe: large.Interior(), Depth: 1}
	if rate, err := SweepRate(ctx, l, Options{}, 1); !errors.Is(err, cause) {
		t.Errorf("%g points a second, %v, want %v", rate, err, cause)
	}
	if rate, err := MeanRate(ctx, l, Options{}, 1, time.Hour); !errors.Is(err, cause) || rate != 0 {
		t.Errorf("%g points a second over some time, %v, want %v", rate, err, cause)
	}
}
