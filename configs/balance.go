package configs

import (
	"fmt"
	"strconv"
	"strings"
)

// The values of run.balance that are no weights.
const (
	BalanceEqual = "equal" // stripes differ by at most one row group
	BalanceAuto  = "auto"  // stripes in proportion to the speeds that the ranks measure
)

// Weights returns the weights of run.balance, one a rank; nil for equal and auto.
func (r Run) Weights() ([]float64, error) {
	if r.Balance == BalanceEqual || r.Balance == BalanceAuto {
		return nil, nil
	}
	wanted := fmt.Sprintf("it must be equal, auto, or a positive number for each of %d ranks, as in 2,1", r.Ranks)
	parts := strings.Split(r.Balance, ",")
	weights := make([]float64, len(parts))
	for rank, text := range parts {
		w, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(w >= minWeight && w <= maxWeight) {
			return nil, fmt.Errorf("run.balance %q: %q is the weight of rank %d; %s", r.Balance, text, rank, wanted)
		}
		weights[rank] = w
	}
	if len(weights) != r.Ranks {
		return nil, fmt.Errorf("run.balance %q: it has %d weights, and run.ranks is %d; %s", r.Balance, len(weights),
			r.Ranks, wanted)
	}
	return weights, nil
}

// Weights returns the weights of run.balance of the working ranks; nil for equal and auto.
func (c Config) Weights() ([]float64, error) {
	weights, err := c.Run.Weights()
	if weights == nil {
		return nil, err
	}
	return weights[:c.Working()], err
}

// Weights beyond these bounds are mistakes, and their sums might not be finite.
const (
	minWeight = 1e-9
	maxWeight = 1e9
)
