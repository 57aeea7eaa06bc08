package rank

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"jacobi/configs"
	"jacobi/internal/awake"
	"jacobi/internal/cpu"
	"jacobi/solver"
)

const (
	// balanceTime is how long ranks measure their speed for run.balance auto. A quota of processor time is given out in
	// periods of 100 ms as a rule, of which some have to fit.
	balanceTime = 500 * time.Millisecond
	// evenShare is the speed of the slowest rank, as a share of that of the fastest, from which on stripes stay equal.
	evenShare = 0.95
)

// balance says how the mesh is divided among the ranks. It is the same on all ranks.
type balance struct {
	Weights []float64 `json:"weights,omitempty"` // by rank; nil for equal stripes
	Why     string    `json:"why"`               // for the report; "" for run.balance equal
}

// text describes the stripes in one line.
func (b balance) text(stripes []solver.Stripe) string {
	low, high := math.MaxInt, 0
	for _, s := range stripes {
		low, high = min(low, s.Rows()), max(high, s.Rows())
	}
	return fmt.Sprintf("stripes of %d to %d rows (%s)", low, high, b.Why)
}

// findBalance returns the balance of the run. For run.balance auto the ranks measure their speed, all at once, and rank
// 0 decides. All ranks call it.
func (j *joined) findBalance(ctx context.Context, depth haloDepth) (b balance, err error) {
	switch weights, err := j.Config.Run.Weights(); {
	case err != nil:
		return b, err
	case weights != nil:
		return balance{weights, "run.balance " + j.Config.Run.Balance}, nil
	case j.Config.Run.Balance == configs.BalanceEqual || j.id.Size == 1:
		return b, nil
	}
	for _, g := range j.team.Groups() {
		if g.First.Device != "cpu" {
			return balance{Why: fmt.Sprintf("run.balance auto: equal, since rank %d sweeps on a GPU, whose speed is "+
				"not measured", g.First.Rank)}, nil
		}
	}
	ctx, cancel := awake.WithTimeout(ctx, j.Config.Halo.Timeout+balanceTime)
	defer cancel()
	if b, err = j.measureBalance(ctx, depth); err != nil {
		return b, fmt.Errorf("rank %d: run.balance auto: %w", j.id.Rank, err)
	}
	return b, nil
}

// measureBalance measures the speed of this rank while all others do the same, and returns the balance that rank 0
// finds by all speeds.
func (j *joined) measureBalance(ctx context.Context, depth haloDepth) (b balance, err error) {
	p, err := newPlan(j.problem.Mesh(), depth, nil, j.id, j.team.Groups())
	if err != nil {
		return b, err
	}
	p.layout.Operator = j.problem.Operator()
	if err := j.team.Barrier(ctx, "balance"); err != nil {
		return b, err
	}
	rate, err := cpu.MeanRate(ctx, p.layout, j.cpuOptions(), p.passSweeps, balanceTime)
	if err != nil {
		return b, fmt.Errorf("measure the speed of the CPU: %w", err)
	}
	data, err := json.Marshal(rate)
	if err != nil {
		return b, err
	}
	parts, err := j.team.Gather(ctx, "speeds", data)
	if err != nil {
		return b, err
	}
	if j.id.Rank == 0 {
		rates := make([]float64, len(parts))
		for r, part := range parts {
			if err := json.Unmarshal(part, &rates[r]); err != nil {
				return b, fmt.Errorf("speed of rank %d: %w", r, err)
			}
		}
		if data, err = json.Marshal(balanceOf(rates)); err != nil {
			return b, err
		}
	}
	if data, err = j.team.Broadcast(ctx, "balance", data); err != nil {
		return b, err
	}
	return b, json.Unmarshal(data, &b)
}

// balanceOf returns the balance for ranks that update so many points in a second. Weights are hundredths of the
// greatest.
func balanceOf(rates []float64) balance {
	low, high := slices.Min(rates), slices.Max(rates)
	if !(low > 0) || math.IsInf(high, 1) {
		return balance{Why: "run.balance auto: equal, since a speed could not be measured"}
	}
	if low >= evenShare*high {
		return balance{Why: fmt.Sprintf("run.balance auto: equal, since the slowest rank has %.0f%% of the fastest "+
			"one's speed", 100*low/high)}
	}
	b := balance{Weights: make([]float64, len(rates)), Why: fmt.Sprintf("run.balance auto: rank %d sweeps "+
		"%.2f GLUP/s, the slowest, rank %d %.2f, the fastest", slices.Index(rates, low), low/1e9,
		slices.Index(rates, high), high/1e9)}
	for r, rate := range rates {
		b.Weights[r] = max(1, math.Round(100*rate/high))
	}
	return b
}
