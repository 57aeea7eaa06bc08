package problem

import (
	"fmt"
	"math"
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
			"[[1.5 0.5 2.5 0.5] [2.5 0.5 2.5 1.5] [1.5 1.5 2.5 1.5] [1.5 0.5 1.5 1.5]]"},
		{configs.Problem{Coefficient: "ix > 2 ? 0 : 1", Fixed: "ix > 3"}, "[[2.5 -0.5 2.5 4.5] [3.5 -0.5 3.5 4.5]]"},
		{configs.Problem{Fixed: "ix == 2 and iy != 2"}, "[[1.5 -0.5 1.5 1.5] [1.5 1.5 2.5 1.5] " +
			"[2.5 -0.5 2.5 1.5] [1.5 2.5 1.5 4.5] [1.5 2.5 2.5 2.5] [2.5 2.5 2.5 4.5]]"},
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

// Outlines of areas lie on their edges, with their corners, and meet where several do. On the rim they go on to that of
// the picture.
func TestOutlinesLieOnEdges(t *testing.T) {
	const periodic = "periodic"
	for _, c := range []struct {
		p    configs.Problem
		want string
	}{
		{configs.Problem{Coefficient: "y > 0.3125 ? 4 : 1"}, "[[-0.5 1.25 4.5 1.25]]"},
		{configs.Problem{Coefficient: "y > 0.3125 ? 1.4 : 1"}, "[]"},
		{configs.Problem{Coefficient: "exp(20*x)"}, "[]"}, // it does not jump
		{configs.Problem{Coefficient: "x > 0.3125 ? 0 : 1"}, "[[1.25 -0.5 1.25 4.5]]"},
		{configs.Problem{Fixed: "x >= 0.3125 and x <= 0.6875 and y <= 0.5"},
			"[[1.25 -0.5 1.25 2] [1.25 2 2.75 2] [2.75 -0.5 2.75 2]]"},
		{configs.Problem{Fixed: "x > 0.3125 and x < 0.6875 and y > 0.2 and y < 0.7"}, "[[1.25 0.80078125 " +
			"2.75 0.80078125] [2.75 0.80078125 2.75 2.80078125] [1.25 2.80078125 2.75 2.80078125] [1.25 0.80078125 " +
			"1.25 2.80078125]]"},
		{configs.Problem{Fixed: "not(x > 0.3125 and y > 0.3125)"}, "[[1.25 1.25 4.5 1.25] [1.25 1.25 1.25 4.5]]"},
		{configs.Problem{Fixed: "x >= 0.5625 and y >= 0.375", Coefficient: "y > 0.375 ? 3 : 1"}, // three meet
			"[[-0.5 1.5 2.25 1.5] [2.25 1.5 2.25 4.5] [2.25 1.5 4.5 1.5]]"},
		{configs.Problem{Coefficient: "x > 0.3125 and y > 0.3125 or x < 0.3125 and y < 0.3125 ? 3 : 1"}, // four do
			"[[1.25 -0.5 1.25 1.25] [-0.5 1.25 1.25 1.25] [1.25 1.25 1.25 4.5] [1.25 1.25 4.5 1.25]]"},
		{configs.Problem{Fixed: "y <= 0.3125", Coefficient: "ix > 2 ? 4 : 1"}, // an area, and an array
			"[[-0.5 1.25 2.5 1.25] [2.5 1.25 2.5 4.5] [2.5 1.25 4.5 1.25]]"},
		{configs.Problem{Fixed: "x >= 0.75", Left: periodic, Right: periodic},
			"[[0 -0.5 0 4.5] [2.25 -0.5 2.25 4.5] [3 -0.5 3 4.5]]"},
		{configs.Problem{Fixed: pngFile(t, gray([]byte{0, 255, 255, 255, 255}, []byte{0, 255, 255, 255, 255}))},
			"[[0.80078125 -0.5 0.80078125 4.5]]"},
		{configs.Problem{Drawing: pngFile(t, drawn("cccc....", "........", "........", "........")),
			Colours: "#b87333 value=1; #ffffff"}, "[[2 -0.5 2 1] [-0.5 1 2 1]]"},
		{configs.Problem{Fixed: "x == 0.5 and y == 0.5"}, "[[2 2 2 2]]"},
	} {
		lines, err := open(t, config(5, 5, "float64", c.p)).Outlines(t.Context())
		if got := fmt.Sprint(lines); err != nil || got != c.want {
			t.Errorf("%+v: %s, %v; want %s", c.p, got, err, c.want)
		}
	}
}

// The outline of a circle is as long as it is, and lies on it, with few lines.
func TestOutlineOfACircle(t *testing.T) {
	for _, n := range []int{33, 257, 1500} {
		for _, c := range []configs.Problem{{Fixed: "hypot(x - 0.5, y - 0.5) <= 0.4"},
			{Coefficient: "hypot(x - 0.5, y - 0.5) <= 0.4 ? 0 : 1"}} {
			lines, err := open(t, config(n, n, "float64", c)).Outlines(t.Context())
			middle, r := float64(n-1)/2, 0.4*float64(n-1)
			cell := max(1, float64(n-1)/511)
			length, farthest := 0.0, 0.0
			for _, l := range lines {
				length += math.Hypot(l[2]-l[0], l[3]-l[1])
				for f := 0.0; f <= 1; f += 0.125 {
					x, y := l[0]+f*(l[2]-l[0]), l[1]+f*(l[3]-l[1])
					farthest = max(farthest, math.Abs(math.Hypot(x-middle, y-middle)-r))
				}
			}
			most := cell/32 + 2*cell*cell/(8*r) // the chord of a cell passes by the circle by its square over 8 r
			if err != nil || farthest > most || math.Abs(length/(2*math.Pi*r)-1) > 0.003 || len(lines) > 400 {
				t.Errorf("%d points, %+v: %d lines of length %v, want %v, that pass by %v, want at most %v; %v", n, c,
					len(lines), length, 2*math.Pi*r, farthest, most, err)
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
