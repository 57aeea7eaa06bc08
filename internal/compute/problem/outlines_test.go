package problem

import (
	"fmt"
	"testing"

	"jacobi/configs"
)

// Outlines lie halfway between points that look different.
func TestOutlines(t *testing.T) {
	for _, c := range []struct {
		p    configs.Problem
		want string
	}{
		{configs.Problem{}, "[]"},
		{configs.Problem{Coefficient: "1+x*y"}, "[]"},
		{configs.Problem{Coefficient: "iy > 2 ? 4 : 1"}, "[[-0.5 2.5 4.5 2.5]]"},
		{configs.Problem{Fixed: "ix == 2 and iy == 1"},
			"[[1.5 0.5 1.5 1.5] [2.5 0.5 2.5 1.5] [1.5 0.5 2.5 0.5] [1.5 1.5 2.5 1.5]]"},
		{configs.Problem{Coefficient: "ix > 2 ? 0 : 1", Fixed: "ix > 3"}, "[[2.5 -0.5 2.5 4.5] [3.5 -0.5 3.5 4.5]]"},
		{configs.Problem{Fixed: "ix == 2 and iy != 2"}, "[[1.5 -0.5 1.5 1.5] [2.5 -0.5 2.5 1.5] " +
			"[1.5 1.5 2.5 1.5] [1.5 2.5 1.5 4.5] [2.5 2.5 2.5 4.5] [1.5 2.5 2.5 2.5]]"},
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
