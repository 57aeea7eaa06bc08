package solver

import "testing"

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
