package solver

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestPartitionTilesTheInterior(t *testing.T) {
	for ny := 3; ny < 200; ny++ {
		for ranks := 1; ranks <= MaxRanks(Stripe{1, ny - 1}, 1); ranks++ {
			stripes, err := Partition(Stripe{1, ny - 1}, ranks, 1)
			if err != nil {
				t.Fatalf("ny %d, ranks %d: %v", ny, ranks, err)
			}
			row, low, high := 1, 1<<30, 0
			for r, s := range stripes {
				if s.Lo != row || s.Hi <= s.Lo {
					t.Fatalf("ny %d, ranks %d: rank %d has %v, want it to begin at %d", ny, ranks, r, s, row)
				}
				if r > 0 && s.Lo%GroupRows != 0 {
					t.Fatalf("ny %d, ranks %d: rank %d begins at row %d, inside a row group", ny, ranks, r, s.Lo)
				}
				groups := (s.Hi-1)/GroupRows - s.Lo/GroupRows + 1
				low, high = min(low, groups), max(high, groups)
				row = s.Hi
			}
			if row != ny-1 || high-low > 1 {
				t.Fatalf("ny %d, ranks %d: ends at %d, stripes of %d to %d groups", ny, ranks, row, low, high)
			}
		}
	}
}

func TestPartitionRefusesAndNamesTheLargest(t *testing.T) {
	for _, c := range []struct {
		ny, ranks, depth int
		want             string
	}{
		{64, 9, 1,
			"ranks 9: a mesh of 62 interior rows with halo depth 1 allows at most 8 (stripes are whole groups of 8 " +
				"rows and at least as high as the halo)"},
		{64, 8, 8,
			"ranks 8: a mesh of 62 interior rows with halo depth 8 allows at most 4 (stripes are whole groups of 8 " +
				"rows and at least as high as the halo)"},
		{3, 2, 1,
			"ranks 2: a mesh of 1 interior rows with halo depth 1 allows at most 1 (stripes are whole groups of 8 " +
				"rows and at least as high as the halo)"},
		{3, 1, 2,
			"ranks 1: a mesh of 1 interior rows with halo depth 2 allows at most 0 (stripes are whole groups of 8 " +
				"rows and at least as high as the halo)"},
		{64, 0, 1, "ranks 0: at least 1 is needed"},
	} {
		_, err := Partition(Stripe{1, c.ny - 1}, c.ranks, c.depth)
		if err == nil || err.Error() != c.want {
			t.Errorf("Partition(%d, %d, %d): %v, want %s", c.ny, c.ranks, c.depth, err, c.want)
		}
	}
}

func TestMaxRanksIsTheLargestThatWorks(t *testing.T) {
	for ny := 3; ny < 120; ny++ {
		for depth := 1; depth < 20; depth++ {
			want := 0
			for n := 1; n <= ny; n++ {
				if _, err := Partition(Stripe{1, ny - 1}, n, depth); err == nil {
					want = n
				}
			}
			if got := MaxRanks(Stripe{1, ny - 1}, depth); got != want {
				t.Fatalf("MaxRanks(%d, %d) = %d, want %d", ny, depth, got, want)
			}
		}
	}
}

func TestCanonicalRows(t *testing.T) {
	periodic := Mesh{NX: 3, NY: 10, Walls: WrapRows(true)} // rows 1..8 repeat
	for row, want := range map[int]int{0: 8, 1: 1, 8: 8, 9: 1, -1: 7, -8: 8, 17: 1, 10: 2} {
		if got, ok := periodic.Canonical(row); !ok || got != want {
			t.Errorf("row %d: %d, %v; want %d", row, got, ok, want)
		}
	}
	fixed := Mesh{NX: 3, NY: 10}
	for row, want := range map[int]bool{-1: false, 0: true, 9: true, 10: false} {
		if got, ok := fixed.Canonical(row); ok != want || got != row {
			t.Errorf("row %d: %d, %v; want ok %v", row, got, ok, want)
		}
	}
}

// Stripes by weights are whole row groups, hold the depth, and are within half a row group of the ideal cuts where the
// depth allows it.
func TestPartitionBy(t *testing.T) {
	for _, c := range []struct {
		ny      int
		weights []float64
		depth   int
		want    []int // rows from which stripes begin
	}{
		{130, []float64{1, 1}, 1, []int{1, 64}},
		{130, nil, 1, []int{1, 64}},
		{130, []float64{2, 1}, 1, []int{1, 88}},
		{130, []float64{1, 3}, 1, []int{1, 32}},
		{130, []float64{1e300, 1e-300}, 1, []int{1, 128}},
		{130, []float64{1e300, 1e-300}, 5, []int{1, 120}},
		{130, []float64{1e300, 1e-300}, 10, []int{1, 112}},
		{130, []float64{1e-300, 1e300}, 8, []int{1, 16}},
		{1026, []float64{2, 1, 1}, 16, []int{1, 512, 768}},
		{50, []float64{1, 9, 1, 1, 1, 1}, 1, []int{1, 8, 24, 32, 40, 48}},
	} {
		interior := Stripe{1, c.ny - 1}
		stripes, err := PartitionBy(interior, c.weights, len(c.want), c.depth)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		for r, s := range stripes {
			hi := interior.Hi
			if r+1 < len(c.want) {
				hi = c.want[r+1]
			}
			if want := (Stripe{c.want[r], hi}); s != want {
				t.Errorf("%+v: stripe %d is %v, want %v", c, r, s, want)
			}
		}
	}
}

// Whatever the weights, the stripes cover the interior and hold the depth.
func TestPartitionByHoldsTheDepth(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		interior := Stripe{rng.IntN(2), 3 + rng.IntN(300)}
		depth := 1 + rng.IntN(20)
		most := MaxRanks(interior, depth)
		if most == 0 {
			continue
		}
		weights := make([]float64, 1+rng.IntN(most))
		for r := range weights {
			weights[r] = math.Exp(20 * rng.Float64())
		}
		stripes, err := PartitionBy(interior, weights, len(weights), depth)
		if err != nil {
			t.Fatal(err)
		}
		for r, s := range stripes {
			if r == 0 && s.Lo != interior.Lo || r > 0 && (s.Lo != stripes[r-1].Hi || s.Lo%GroupRows != 0) ||
				r == len(stripes)-1 && s.Hi != interior.Hi || s.Rows() < depth {
				t.Fatalf("interior %v, depth %d, weights %v: stripes %v", interior, depth, weights, stripes)
			}
		}
	}
}

func TestPartitionByRefuses(t *testing.T) {
	for _, c := range []struct {
		weights []float64
		want    string
	}{
		{[]float64{1, 2, 3}, "3 weights for 2 ranks"},
		{[]float64{1, 0}, "weight 0 of rank 1: must be a positive number"},
		{[]float64{-1, 1}, "weight -1 of rank 0: must be a positive number"},
		{[]float64{1, math.Inf(1)}, "weight +Inf of rank 1: must be a positive number"},
	} {
		if _, err := PartitionBy(Stripe{1, 65}, c.weights, 2, 1); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.weights, err, c.want)
		}
	}
}
