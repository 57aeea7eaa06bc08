package solver

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// GroupRows and GroupCols are the height and width of a group: the points whose squared updates are added in floating
// point, in one fixed order, before the exact sum begins (see Sum). Groups are aligned to multiples of these numbers in
// global coordinates, so they depend neither on the ranks nor on the kernel. A stripe consists of whole row groups.
const (
	GroupRows = 8
	GroupCols = 4
)

// Stripe is the half-open range [Lo, Hi) of global rows.
type Stripe struct{ Lo, Hi int }

// Rows returns the height of the stripe.
func (s Stripe) Rows() int { return s.Hi - s.Lo }

// Edge returns the n rows of the stripe at a side.
func (s Stripe) Edge(side Side, n int) Stripe {
	if side == Top {
		return Stripe{s.Lo, s.Lo + n}
	}
	return Stripe{s.Hi - n, s.Hi}
}

// Beyond returns the n rows beyond a side.
func (s Stripe) Beyond(side Side, n int) Stripe {
	if side == Top {
		return Stripe{s.Lo - n, s.Lo}
	}
	return Stripe{s.Hi, s.Hi + n}
}

// Reach returns the stripe with n rows more beyond each of the given sides.
func (s Stripe) Reach(n int, sides [2]bool) Stripe {
	if sides[Top] {
		s.Lo -= n
	}
	if sides[Bottom] {
		s.Hi += n
	}
	return s
}

// String returns the stripe as "[Lo, Hi)".
func (s Stripe) String() string { return fmt.Sprintf("[%d, %d)", s.Lo, s.Hi) }

// rowGroups returns the number of row groups that hold interior rows.
func rowGroups(interior Stripe) int { return (interior.Hi + GroupRows - 1) / GroupRows }

// Partition divides the interior rows of a mesh among ranks. Stripes are contiguous and in rank order, begin at
// multiples of GroupRows (the first one at the first interior row) and differ by at most one row group. Every stripe
// holds at least depth rows, so that a halo comes from one neighbour alone. If that is impossible, the error names the
// largest number of ranks that works.
func Partition(interior Stripe, ranks, depth int) ([]Stripe, error) {
	if ranks < 1 {
		return nil, fmt.Errorf("ranks %d: at least 1 is needed", ranks)
	}
	if !fits(interior, ranks, depth) {
		return nil,
			fmt.Errorf("ranks %d: a mesh of %d interior rows with halo depth %d allows at most %d (stripes are whole "+
				"groups of %d rows and at least as high as the halo)",
				ranks, interior.Rows(), depth, MaxRanks(interior, depth), GroupRows)
	}
	stripes := make([]Stripe, ranks)
	for r := range stripes {
		stripes[r] = stripe(interior, ranks, r)
	}
	return stripes, nil
}

// PartitionBy divides the interior rows as Partition does, with stripes in proportion to weights, one a rank, instead
// of equal ones. It moves every cut between two stripes to the row group that is nearest to the ideal one and leaves
// depth rows to every stripe. Equal weights, or none, give the stripes of Partition. Partition must accept the depth.
func PartitionBy(interior Stripe, weights []float64, ranks, depth int) ([]Stripe, error) {
	stripes, err := Partition(interior, ranks, depth)
	if err != nil || len(weights) == 0 || slices.Min(weights) == slices.Max(weights) {
		return stripes, err
	}
	if len(weights) != ranks {
		return nil, fmt.Errorf("%d weights for %d ranks", len(weights), ranks)
	}
	total := 0.0
	for r, w := range weights {
		if !(w > 0) || math.IsInf(w, 1) {
			return nil, fmt.Errorf("weight %g of rank %d: must be a positive number", w, r)
		}
		total += w
	}
	groups := rowGroups(interior)
	least := func(r int) int { // row groups that a stripe needs
		switch r {
		case 0:
			return max(1, (interior.Lo+depth+GroupRows-1)/GroupRows)
		case ranks - 1:
			return max(1, groups-(interior.Hi-depth)/GroupRows)
		}
		return max(1, (depth+GroupRows-1)/GroupRows)
	}
	below := 0 // row groups that the stripes below need
	for r := range ranks {
		below += least(r)
	}
	cut, sum := 0, 0.0
	for r := range ranks - 1 {
		sum += weights[r]
		below -= least(r)
		// Each operation is rounded on its own, so that all ranks come to the same cut.
		row := float64(interior.Lo) + float64(float64(sum/total)*float64(interior.Rows()))
		ideal := int(math.Round(float64(row / GroupRows)))
		cut = min(max(ideal, cut+least(r)), groups-below)
		stripes[r].Hi = cut * GroupRows
		stripes[r+1].Lo = cut * GroupRows
	}
	return stripes, nil
}

// MaxRanks returns the largest number of ranks that Partition accepts, or 0 if even one rank is too many for the depth.
func MaxRanks(interior Stripe, depth int) int {
	// The stripe with the fewest rows never grows with the number of ranks.
	return sort.Search(rowGroups(interior), func(n int) bool { return !fits(interior, n+1, depth) })
}

// MinRows returns the number of rows in the smallest stripe when ranks share the interior. That is the first stripe,
// which has the fewest groups and lacks row 0, or the last one, whose last group may be cut short.
func MinRows(interior Stripe, ranks int) int {
	first, last := stripe(interior, ranks, 0), stripe(interior, ranks, ranks-1)
	return min(first.Rows(), last.Rows())
}

func fits(interior Stripe, ranks, depth int) bool {
	return ranks <= rowGroups(interior) && MinRows(interior, ranks) >= depth
}

func stripe(interior Stripe, ranks, r int) Stripe {
	g := rowGroups(interior)
	return Stripe{
		Lo: max(interior.Lo, r*g/ranks*GroupRows),
		Hi: min(interior.Hi, (r+1)*g/ranks*GroupRows),
	}
}
