// Package tune measures the links between ranks and the speed of their CPUs before the mesh is divided, where the run
// file leaves the depth of the halos or the stripes open.
//
//	depth.go  which depth is best, for links that take a time, and what links over TCP would have saved
//	links.go  the time that links take
//	tune.go   stripes by the speed of the ranks
package tune

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// Ranks are the ranks of a run before the mesh is divided.
type Ranks struct {
	Comm   *roster.Comm
	Config configs.Config
	Log    *zap.Logger
	Mesh   solver.Mesh
	OnGPU  bool        // a GPU sweeps on this rank
	CPU    cpu.Options // of this rank otherwise
	// Divide returns the set-up of the ranks with what o leaves open.
	Divide func(o setup.Options) (*setup.Setup, error)
}

const (
	// balanceTime is how long ranks measure their speed for run.balance auto. A quota of processor time is given out in
	// periods of 100 ms as a rule, and some have to fit.
	balanceTime = 500 * time.Millisecond
	// evenShare is the speed of the slowest rank, as a share of that of the fastest, from which on stripes stay equal.
	evenShare = 0.95
)

// Balance is the division of the mesh among the ranks, the same on all of them.
type Balance struct {
	Weights []float64 `json:"weights,omitempty"` // by rank; nil for equal stripes
	Why     string    `json:"why"`               // for the report; "" for run.balance equal
}

// Text describes the stripes in one line.
func (b Balance) Text(stripes []solver.Stripe) string {
	low, high := math.MaxInt, 0
	for _, s := range stripes {
		low, high = min(low, s.Rows()), max(high, s.Rows())
	}
	return fmt.Sprintf("stripes of %d to %d rows (%s)", low, high, b.Why)
}

// Balance returns the balance of the run. For run.balance auto the ranks measure their speed, all at once, and rank
// 0 decides. All ranks call it.
func (r Ranks) Balance(ctx context.Context, depth setup.Depth) (b Balance, err error) {
	switch weights, err := r.Config.Weights(); {
	case err != nil:
		return b, err
	case weights != nil:
		return Balance{weights, "run.balance " + r.Config.Run.Balance}, nil
	case r.Config.Run.Balance == configs.BalanceEqual || r.Comm.Self().Size == 1:
		return b, nil
	}
	for _, g := range r.Comm.Groups() {
		if g.First.Device != "cpu" {
			return Balance{Why: fmt.Sprintf("run.balance auto: equal, since rank %d sweeps on a GPU, whose speed is "+
				"not measured", g.First.Rank)}, nil
		}
	}
	ctx, cancel := awake.WithTimeout(ctx, r.Config.Halo.Timeout+balanceTime)
	defer cancel()
	if b, err = r.measureBalance(ctx, depth); err != nil {
		return b, fmt.Errorf("rank %d: run.balance auto: %w", r.Comm.Self().Rank, err)
	}
	return b, nil
}

// measureBalance measures the speed of this rank while all others do the same, and returns the balance that rank 0
// finds by all speeds.
func (r Ranks) measureBalance(ctx context.Context, depth setup.Depth) (b Balance, err error) {
	s, err := r.Divide(setup.Options{Depth: depth})
	if err != nil {
		return b, err
	}
	if err := r.Comm.Barrier(ctx, "balance"); err != nil {
		return b, err
	}
	rate, err := cpu.MeanRate(ctx, s.Layout(r.Comm.Self().Rank), r.CPU, balanceTime)
	if err != nil {
		return b, fmt.Errorf("measure the speed of the CPU: %w", err)
	}
	return roster.DecideOn(ctx, r.Comm, "speed", rate, func(rates []float64) (Balance, error) {
		return balanceOf(rates), nil
	})
}

// balanceOf returns the balance for ranks that update the given numbers of points in a second. Weights are hundredths
// of the greatest.
func balanceOf(rates []float64) Balance {
	low, high := slices.Min(rates), slices.Max(rates)
	if !(low > 0) || math.IsInf(high, 1) {
		return Balance{Why: "run.balance auto: equal, since a speed could not be measured"}
	}
	if low >= evenShare*high {
		return Balance{Why: fmt.Sprintf("run.balance auto: equal, since the slowest rank has %.0f%% of the fastest "+
			"one's speed", 100*low/high)}
	}
	b := Balance{Weights: make([]float64, len(rates)), Why: fmt.Sprintf("run.balance auto: rank %d sweeps "+
		"%.2f GLUP/s, the slowest, rank %d %.2f, the fastest", slices.Index(rates, low), low/1e9,
		slices.Index(rates, high), high/1e9)}
	for r, rate := range rates {
		b.Weights[r] = max(1, math.Round(100*rate/high))
	}
	return b
}
