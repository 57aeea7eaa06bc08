package problem

import (
	"context"
	"errors"
	"math"
	"testing"

	"jacobi/configs"
)

// Check finds a value that is not finite at the points that it evaluates. Row and MaxGuess find it everywhere.
func TestValuesNotFinite(t *testing.T) {
	for _, c := range []struct {
		p     configs.Problem
		row   int
		check bool
		want  string
	}{
		{configs.Problem{Left: "1/iy"}, 0, true,
			`problem.left "1/iy" at row 0, column 0 (x = 0, y = 0): +Inf; values must be finite`},
		{configs.Problem{Right: "log(y - 0.5)"}, 0, true,
			`problem.right "log(y - 0.5)" at row 0, column 200 (x = 1, y = 0): NaN; values must be finite`},
		{configs.Problem{Top: "ix == 77 ? 0/0 : 1"}, 0, true,
			`problem.top "ix == 77 ? 0/0 : 1" at row 0, column 77 (x = 0.385, y = 0): NaN; values must be finite`},
		{configs.Problem{Bottom: "1e39"}, 100, true,
			`problem.bottom "1e39" at row 100, column 1 (x = 0.005, y = 1): 1e+39 is too large for float32`},
		{configs.Problem{Initial: "1/(ix - 199)"}, 1, true,
			`problem.initial "1/(ix - 199)" at row 1, column 199 (x = 0.995, y = 0.01): +Inf; values must be ` +
				`finite`},
		{configs.Problem{Initial: "ix == 3 and iy == 50 ? -1e39 : 0"}, 50, false,
			`problem.initial "ix == 3 and iy == 50 ? -1e39 : 0" at row 50, column 3 (x = 0.015, y = 0.5): -1e+39 is ` +
				`too large for float32`},
	} {
		p := open(t, config(201, 101, "float32", c.p))
		if err := p.Row(c.row, make([]byte, 201*4)); err == nil || err.Error() != c.want {
			t.Errorf("Row:\ngot  %v\nwant %s", err, c.want)
		}
		if _, _, err := p.MaxGuess(t.Context(), 0, 101); err == nil || err.Error() != c.want {
			t.Errorf("MaxGuess:\ngot  %v\nwant %s", err, c.want)
		}
		err := p.Check(context.Background())
		if c.check && (err == nil || err.Error() != c.want) {
			t.Errorf("Check:\ngot  %v\nwant %s", err, c.want)
		}
		if !c.check && err != nil {
			t.Errorf("Check: %v", err)
		}
	}
	p := open(t, config(9, 9, "float64", configs.Problem{Initial: "1e39"}))
	equal(t, field(t, p)[1:2], [][]float64{{0, 1e39, 1e39, 1e39, 1e39, 1e39, 1e39, 1e39, 0}})
}

func TestMaxGuess(t *testing.T) {
	for _, p := range []configs.Problem{
		{},
		{Initial: "-3"},
		{Initial: "0.1"},
		{Left: "-5", Initial: "2", Bottom: "7"},
		{Left: "iy", Right: "-2*iy", Initial: "0.1"},
		{Initial: "iy", Top: "ix", Bottom: "-ix"},
		{Initial: "sin(9*x)*cos(7*y)/3"},
		{Preset: "gtc2019"},
		{Preset: "gtc2019", Initial: "-iy*0.3"},
		{Preset: "gtc2019", Initial: "-ix*iy*0.3"},
	} {
		for _, dtype := range []string{"float32", "float64"} {
			q := open(t, config(700, 12, dtype, p))
			rows := field(t, q)
			for lo := range 13 {
				for hi := lo; hi <= 12; hi++ {
					want := 0.0
					for _, r := range rows[lo:hi] {
						for _, v := range r {
							want = max(want, math.Abs(v))
						}
					}
					guess, data, err := q.MaxGuess(t.Context(), lo, hi)
					if err != nil || max(guess, data) != want {
						t.Fatalf("%+v %s rows [%d, %d): %v and %v, %v; want %v", p, dtype, lo, hi, guess, data, err,
							want)
					}
				}
			}
		}
	}
}

func TestMagnitude(t *testing.T) {
	for _, c := range []struct {
		dtype, top string
		want       string // "" if accepted
	}{
		{"float32", "0", ""},
		{"float32", "1e-12", ""},
		{"float32", "9e-13", `problem: its largest absolute value is 9.000000180878209e-13; with float32 0 or 1e-12 ` +
			`to 1e+18 is allowed, because the norm squares it: scale the problem or use grid.dtype float64`},
		{"float32", "1e18", ""},
		{"float32", "-2e18", `problem: its largest absolute value is 1.999999968613499e+18; with float32 0 or 1e-12 ` +
			`to 1e+18 is allowed, because the norm squares it: scale the problem or use grid.dtype float64`},
		{"float64", "2e18", ""},
		{"float64", "1e150", ""},
		{"float64", "1e-120", ""},
		{"float64", "1e151", `problem: its largest absolute value is 1e+151; with float64 0 or 1e-120 to 1e+150 is ` +
			`allowed, because the norm squares it: scale the problem`},
		{"float64", "1e-121", `problem: its largest absolute value is 1e-121; with float64 0 or 1e-120 to 1e+150 is ` +
			`allowed, because the norm squares it: scale the problem`},
	} {
		p := open(t, config(9, 9, c.dtype, configs.Problem{Top: c.top}))
		got := ""
		if err := p.Check(context.Background()); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", c.dtype, c.top, got, c.want)
		}
	}
	p := open(t, config(9, 9, "float32", configs.Problem{}))
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		if p.CheckMagnitude(v, 0) == nil {
			t.Errorf("%v accepted", v)
		}
	}
}

func TestContextEndsTheWork(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	const want = "problem: working out its values: enough"
	p := open(t, config(9, 9, "float32", configs.Problem{Left: "y", Initial: "x"}))
	if err := p.Check(ctx); err == nil || err.Error() != want {
		t.Errorf("Check: error %v, want %s", err, want)
	}
	if _, _, err := p.MaxGuess(ctx, 0, 9); err == nil || err.Error() != want {
		t.Errorf("MaxGuess: error %v, want %s", err, want)
	}
}
