package problem

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"jacobi/configs"
)

// Outlines of arrays at points lie halfway between points that look different.
func TestOutlines(t *testing.T) {
	for _, c := range []struct {
		p    configs.Problem
		want string
	}{
		{configs.Problem{}, "[]"},
		{configs.Problem{Coefficient: "1+x*y"}, "[]"},
		{configs.Problem{Coefficient: "1+0*ix+x*y"}, "[]"},
		{configs.Problem{Coefficient: "iy > 2 ? 4 : 1"}, "[[-0.5 2.5 4.5 2.5]]"},
		{configs.Problem{Fixed: "ix == 2 and iy == 1"},
			"[[1.5 0.5 1.5 1.5] [2.5 0.5 2.5 1.5] [1.5 0.5 2.5 0.5] [1.5 1.5 2.5 1.5]]"},
		{configs.Problem{Coefficient: "ix > 2 ? 0 : 1", Fixed: "ix > 3"}, "[[2.5 -0.5 2.5 4.5] [3.5 -0.5 3.5 4.5]]"},
		{configs.Problem{Fixed: "ix == 2 and iy != 2"}, "[[1.5 -0.5 1.5 1.5] [1.5 2.5 1.5 4.5] " +
			"[2.5 -0.5 2.5 1.5] [2.5 2.5 2.5 4.5] [1.5 1.5 2.5 1.5] [1.5 2.5 2.5 2.5]]"},
	} {
		lines, err := open(t, config(5, 5, "float64", c.p)).Outlines(t.Context())
		if got := fmt.Sprint(lines); err != nil || got != c.want {
			t.Errorf("%+v: %s, %v; want %s", c.p, got, err, c.want)
		}
	}
	comb := open(t, config(512, 512, "float64", configs.Problem{Fixed: "ix%16 < 8 and iy > 8"}))
	if lines, err := comb.Outlines(t.Context()); len(lines) != 63+32 || err != nil {
		t.Errorf("%d lines around a comb, %v; want 63 down and 32 across", len(lines), err)
	}
	random := configs.Problem{Coefficient: "(ix*7919+iy*104729)%13 < 6 ? 1 : 100"}
	large := open(t, config(5000, 3000, "float64", random))
	if lines, err := large.Outlines(t.Context()); lines != nil || err != nil {
		t.Errorf("%d lines of points at random, %v", len(lines), err)
	}
}

// Outlines of areas lie within half a cell of their edges. On the rim they go on to that of the picture. An area that
// is thinner than a cell is as wide as one.
func TestOutlinesOfAreas(t *testing.T) {
	const periodic, cell = "periodic", 4.0 / outlineCells
	for _, c := range []struct {
		p     configs.Problem
		lines [][4]float64
	}{
		{configs.Problem{Coefficient: "y > 0.3125 ? 4 : 1"}, [][4]float64{{-0.5, 1.25, 4.5, 1.25}}},
		{configs.Problem{Coefficient: "y > 0.3125 ? 1.4 : 1"}, nil},
		{configs.Problem{Coefficient: "exp(20*x)"}, nil}, // it does not jump
		{configs.Problem{Coefficient: "(y > 0.3125 ? 1.4 : 1)*exp(20*x)"}, nil},
		{configs.Problem{Coefficient: "x > 0.3125 ? 0 : 1"}, [][4]float64{{1.25, -0.5, 1.25, 4.5}}},
		{configs.Problem{Fixed: "x >= 0.3125 and x <= 0.6875 and y <= 0.5"},
			[][4]float64{{1.25, -0.5, 1.25, 2}, {2.75, -0.5, 2.75, 2}, {1.25, 2, 2.75, 2}}},
		{configs.Problem{Fixed: "not(x > 0.3125 and y > 0.3125)"},
			[][4]float64{{1.25, 1.25, 1.25, 4.5}, {1.25, 1.25, 4.5, 1.25}}},
		{configs.Problem{Fixed: "x >= 0.5625 and y >= 0.375", Coefficient: "y > 0.375 ? 3 : 1"}, // three meet
			[][4]float64{{2.25, 1.5, 2.25, 4.5}, {-0.5, 1.5, 4.5, 1.5}}},
		{configs.Problem{Fixed: "x >= 0.75", Left: periodic, Right: periodic},
			[][4]float64{{2.25, -0.5, 2.25, 4.5}, {3, -0.5, 3, 4.5}}},
		{configs.Problem{Fixed: pngFile(t, gray([]byte{0, 255, 255, 255, 255}, []byte{0, 255, 255, 255, 255}))},
			[][4]float64{{0.8, -0.5, 0.8, 4.5}}},
		{configs.Problem{Drawing: pngFile(t, drawn("cccc....", "........", "........", "........")),
			Colours: "#b87333 value=1; #ffffff"}, [][4]float64{{2, -0.5, 2, 1}, {-0.5, 1, 2, 1}}},
		{configs.Problem{Fixed: "x == 0.34375 and y < 0.8"}, [][4]float64{{1.375, -0.5, 1.375, 3.2},
			{1.375, -0.5, 1.375, 3.2}, {1.375, 3.2, 1.375, 3.2}}},
		{configs.Problem{Fixed: "x > 0.5 and abs(y-0.4) < 0.0001"}, [][4]float64{{2, 1.6, 2, 1.6}, {2, 1.6, 4.5, 1.6},
			{2, 1.6, 4.5, 1.6}}},
	} {
		lines, err := open(t, config(5, 5, "float64", c.p)).Outlines(t.Context())
		near := slices.EqualFunc(lines, c.lines, func(got, want [4]float64) bool {
			far := 0.0
			for i := range got {
				far = max(far, math.Abs(got[i]-want[i]))
			}
			return far <= cell*1.001
		})
		if err != nil || !near {
			t.Errorf("%+v: %v, %v; want about %v", c.p, lines, err, c.lines)
		}
	}
}

// The outline of a circle lies on it.
func TestOutlineOfACircle(t *testing.T) {
	for _, n := range []int{33, 1500} {
		for _, c := range []configs.Problem{{Fixed: "hypot(x - 0.5, y - 0.5) <= 0.4"},
			{Coefficient: "hypot(x - 0.5, y - 0.5) <= 0.4 ? 0 : 1"}} {
			lines, err := open(t, config(n, n, "float64", c)).Outlines(t.Context())
			middle, length, farthest := float64(n-1)/2, 0.0, 0.0
			for _, l := range lines {
				length += l[2] - l[0] + l[3] - l[1]
				for _, end := range [2][2]float64{{l[0], l[1]}, {l[2], l[3]}} {
					r := math.Hypot(end[0]-middle, end[1]-middle) / float64(n-1)
					farthest = max(farthest, math.Abs(r-0.4))
				}
			}
			if length /= float64(n - 1); err != nil || farthest > 1.0/outlineCells || math.Abs(length/3.2-1) > 0.003 {
				t.Errorf("%d points, %+v: lines of length %v, want 3.2, that pass by %v; %v", n, c, length, farthest,
					err)
			}
		}
	}
}

// The outlines of a drawing between periodic sides go on beyond the first pixels, where the last ones lie.
func TestOutlinesOfPeriodicDrawings(t *testing.T) {
	p := open(t, config(17, 17, "float64", configs.Problem{Left: "periodic", Right: "periodic", Top: "periodic",
		Bottom: "periodic", Drawing: pngFile(t, drawn("....", ".b..", "...c")),
		Colours: "#b87333 name=strip value=1; #1565c0 coefficient=5; #ffffff"}))
	if lines, err := p.Outlines(t.Context()); len(lines) == 0 || err != nil {
		t.Errorf("%d lines, %v", len(lines), err)
	}
}
