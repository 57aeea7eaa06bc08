package problem

import (
	"strings"
	"testing"
)

// An initial field far above the solution is refused with what is allowed; beside a solution of 0 any is allowed.
func TestCheckGuess(t *testing.T) {
	p := maskedOf(t, "problem.initial=1e30")
	const want = `problem.initial "1e+30": its largest absolute value at a point that is not fixed is 1e+30, and the ` +
		`solution is at most about 3; at most 3.1e+06 is allowed, because norms are multiples of a unit that follows ` +
		`from the largest value`
	if err := p.CheckGuess(1e30, 1, 2); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, c := range [][3]float64{{3e6, 1, 2}, {1e30, 0, 0}, {0, 1, 0}} {
		if err := p.CheckGuess(c[0], c[1], c[2]); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// Check finds the same initial fields before a run starts: with fixed points that its samples hit or miss, and with a
// source. Values of fixed points may be as large as they like.
func TestCheckFindsGuesses(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string // of the error; "": none
	}{
		{[]string{"problem.top=1", "problem.initial=1e9*x*y"},
			"a point that is not fixed is 9.922027587890625e+08, and the solution is at most about 1;"},
		{[]string{"problem.top=1", "problem.initial=1e5*x*y"}, ""},
		{[]string{"problem.top=1", "problem.initial=1e9*x*y", "problem.fixed=x > 0.5"}, ""},
		{[]string{"problem.top=1", "problem.initial=x > 0.5 ? 1e9 : 0", "problem.fixed=x > 0.5"}, ""},
		{[]string{"problem.initial=1e9*x*y"}, ""}, // the solution is 0
		{[]string{"problem.initial=ix == 2 && iy == 2 ? 1 : 1e9", "problem.fixed=ix == 2 && iy == 2"},
			"a point that is not fixed is 1e+09, and the solution is at most about 1;"},
		{[]string{"problem.source=1", "problem.initial=1e9"},
			"a point that is not fixed is 1e+09, and the solution is at most about 0.1;"},
		{[]string{"problem.source=1e5", "problem.initial=1e9"}, ""},
	} {
		p := maskedOf(t, append(c.keys, "grid.nx=257", "grid.ny=257", "problem.preset=", "grid.dtype=float64")...)
		err := p.Check(t.Context())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.keys, err, c.want)
		}
	}
}
