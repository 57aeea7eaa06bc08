package problem

import (
	"math"
	"math/rand/v2"
	"testing"
)

// An edge through the nine pixels around one is found again in each of them that it divides.
func TestStraightEdgesAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tried := 0
	for range 2000 {
		angle, offset := 2*math.Pi*r.Float64(), r.Float64()-0.5
		e := division{nx: math.Cos(angle), ny: math.Sin(angle)}
		size := math.Abs(e.nx) + math.Abs(e.ny)
		e.nx, e.ny = e.nx/size, e.ny/size
		e.d = 1.5*(e.nx+e.ny) + offset
		var s coverage
		for j := range s {
			for i := range s[j] {
				s[j][i] = e.share(float64(i), float64(j))
			}
		}
		for _, at := range [][2]int{{1, 1}, {0, 1}, {2, 1}, {1, 0}, {1, 2}} {
			column, row := at[0], at[1]
			if share := s[row][column]; share < 1e-3 || share > 1-1e-3 {
				continue
			}
			got := s.divide(column, row)
			d := e.d - e.nx*float64(column) - e.ny*float64(row)
			if off := math.Abs(got.nx-e.nx) + math.Abs(got.ny-e.ny) + math.Abs(got.d-d); off > 1e-9 {
				// Beside the middle, an edge may leave the nine pixels before it tells its slope.
				if at == [2]int{1, 1} {
					t.Errorf("%+v: %+v", e, got)
				}
				continue
			}
			tried++
		}
	}
	if tried < 5000 {
		t.Errorf("%d edges are exact", tried)
	}
}

// What a line thinner than a pixel has of it lies along the line.
func TestThinLines(t *testing.T) {
	for _, c := range []struct {
		s    coverage
		want division
	}{
		{coverage{{}, {0.25, 0.25, 0.25}, {}}, division{ny: 1, d: 0.25}},
		{coverage{{0, 0.25, 0}, {0, 0.25, 0}, {0, 0.25, 0}}, division{nx: 1, d: 0.25}},
		{coverage{{1, 1, 1}, {0.25, 0.25, 0.25}, {1, 1, 1}}, division{ny: 1, d: 0.25}},
		{coverage{{}, {0.25, 0.25, 0.25}, {0.5, 0.5, 0.5}}, division{ny: -1, d: -0.75}},
	} {
		got, want := c.s.divide(1, 1), c.want
		if math.Abs(got.nx-want.nx)+math.Abs(got.ny-want.ny)+math.Abs(got.d-want.d) > 1e-15 {
			t.Errorf("%v: %+v, want %+v", c.s, got, want)
		}
	}
}
