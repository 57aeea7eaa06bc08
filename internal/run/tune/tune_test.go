package tune

import (
	"slices"
	"testing"

	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// The ranks divide the mesh by what all of their devices can do, which they find in their roster.
func TestDepthAndPassesOfAllDevices(t *testing.T) {
	for _, c := range []struct {
		depths []int // that the ranks prefer
		want   int
	}{{[]int{32, 12, 20}, 12}, {[]int{16}, 16}, {[]int{9, 16, 16}, 9}} {
		var members []roster.Member
		for _, depth := range c.depths {
			members = append(members, roster.Member{Role: roster.Role{Depth: depth}})
		}
		if got := preferredDepth(roster.GroupsOf(members)); got != c.want {
			t.Errorf("%v: %d, want %d", c.depths, got, c.want)
		}
	}
}

// Speeds that differ by little give equal stripes, others weights in hundredths of the fastest.
func TestBalanceOf(t *testing.T) {
	for _, c := range []struct {
		rates   []float64
		weights []float64
		why     string
	}{
		{[]float64{4e9, 4e9}, nil,
			"run.balance auto: equal, since the slowest rank has 100% of the fastest one's speed"},
		{[]float64{4e9, 3.8e9}, nil,
			"run.balance auto: equal, since the slowest rank has 95% of the fastest one's speed"},
		{[]float64{2e9, 4e9, 3.999e9}, []float64{50, 100, 100},
			"run.balance auto: rank 0 sweeps 2.00 GLUP/s, the slowest, rank 1 4.00, the fastest"},
		{[]float64{4e9, 1}, []float64{100, 1},
			"run.balance auto: rank 1 sweeps 0.00 GLUP/s, the slowest, rank 0 4.00, the fastest"},
		{[]float64{4e9, 0}, nil, "run.balance auto: equal, since a speed could not be measured"},
	} {
		if b := balanceOf(c.rates); !slices.Equal(b.Weights, c.weights) || b.Why != c.why {
			t.Errorf("%v: %v, %s\nwant %v, %s", c.rates, b.Weights, b.Why, c.weights, c.why)
		}
	}
}

func TestBalanceText(t *testing.T) {
	b := Balance{Why: "run.balance 2,1"}
	if text := b.Text([]solver.Stripe{{Lo: 1, Hi: 88}, {Lo: 88, Hi: 129}}); text !=
		"stripes of 41 to 87 rows (run.balance 2,1)" {
		t.Error(text)
	}
}
