package configs

import "testing"

// Half of a mesh has half the intervals each way, rounded up, on the same rectangle.
func TestHalved(t *testing.T) {
	for _, c := range []struct {
		nx, ny        int
		side          string // left and right
		width, height float64
		halfX, halfY  int
		height2       float64
		enough        bool
	}{
		{nx: 129, ny: 65, side: "0", width: 2, halfX: 65, halfY: 33, height2: 1, enough: true},
		{nx: 130, ny: 100, side: "0", width: 1, height: 3, halfX: 66, halfY: 51, height2: 3, enough: true},
		{nx: 130, ny: 65, side: Periodic, width: 1, height: 1, halfX: 66, halfY: 33, height2: 1, enough: true},
		{nx: 9, ny: 8, side: "0", width: 1, halfX: 5, halfY: 5, height2: 0.875, enough: true},
		{nx: 9, ny: 7, side: "0", width: 1, halfX: 5, halfY: 4, height2: 0.75},
	} {
		base := Default()
		base.Grid.NX, base.Grid.NY, base.Grid.Width, base.Grid.Height = c.nx, c.ny, c.width, c.height
		base.Problem = Problem{Left: c.side, Right: c.side, Top: "0", Bottom: "0"}
		half, enough := base.Halved()
		if g := half.Grid; g.NX != c.halfX || g.NY != c.halfY || g.Width != c.width || g.Height != c.height2 ||
			enough != c.enough {
			t.Errorf("half of %d x %d: %+v, %v", c.nx, c.ny, g, enough)
		}
	}
}
