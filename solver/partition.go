package solver

import (
	"fmt"
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

// String returns the stripe as "[Lo, Hi)".
func (s Stripe) String() string { return fmt.Sprintf("[%d, %d)", s.Lo, s.Hi) }

// rowGroups returns the number of row groups that hold interior rows, which are [1, ny-1).
func rowGroups(ny int) int { return (ny - 1 + GroupRows - 1) / GroupRows }

// Partition divides the interior rows [1, ny-1) of a mesh among ranks. Stripes are contiguous and in rank order, begin
// at multiples of GroupRows (the first one at row 1) and differ by at most one row group. Every stripe holds at least
// depth rows, so that a halo comes from one neighbour alone. If that is impossible, the error names the largest number
// of ranks that works.
func Partition(ny, ranks, depth int) ([]Stripe, error) {
	if ranks < 1 {
		return nil, fmt.Errorf("ranks %d: at least 1 is needed", ranks)
	}
	if !fits(ny, ranks, depth) {
		return nil, fmt.Errorf("ranks %d: a mesh of %d rows with halo depth %d allows at most %d (stripes are whole "+
			"groups of %d rows and at least as high as the halo)",
			ranks, ny, depth, MaxRanks(ny, depth), GroupRows)
	}
	stripes := make([]Stripe, ranks)
	for r := range stripes {
		stripes[r] = stripe(ny, ranks, r)
	}
	return stripes, nil
}

// MaxRanks returns the largest number of ranks that Partition accepts, or 0 if even one rank is too many for the depth.
func MaxRanks(ny, depth int) int {
	// The stripe with the fewest rows never grows with the number of ranks.
	return sort.Search(rowGroups(ny), func(n int) bool { return !fits(ny, n+1, depth) })
}

// MinRows returns the number of rows in the smallest stripe when ranks share ny rows. That is the first stripe, which
// has the fewest groups and lacks row 0, or the last one, whose last group may be cut short.
func MinRows(ny, ranks int) int {
	first, last := stripe(ny, ranks, 0), stripe(ny, ranks, ranks-1)
	return min(first.Rows(), last.Rows())
}

func fits(ny, ranks, depth int) bool {
	return ranks <= rowGroups(ny) && MinRows(ny, ranks) >= depth
}

func stripe(ny, ranks, r int) Stripe {
	g := rowGroups(ny)
	return Stripe{
		Lo: max(1, r*g/ranks*GroupRows),
		Hi: min(ny-1, (r+1)*g/ranks*GroupRows),
	}
}
