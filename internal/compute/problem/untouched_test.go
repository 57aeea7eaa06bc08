package problem

import (
	"fmt"
	"slices"
	"testing"

	"jacobi/configs"
)

// A fixed area that no line of the mesh crosses is said, with its place, and so are two of different values within a
// spacing. One that a line crosses is not, however little of it.
func TestUntouchedAreas(t *testing.T) {
	const area, gap = "the area around %s lies between the lines of the mesh, and has no effect; take more points",
		"around %s areas of two values lie within a spacing of the mesh, and the field between them is lost; " +
			"take more points"
	for text, want := range map[string]string{
		"abs(y-0.3) < 0.02":                                    "",
		"abs(y-0.3) < 1e-9 and abs(x-0.5) < 0.2":               "",
		"y == 0.3 and abs(x-0.5) < 0.2":                        "",
		"hypot(x-0.55, y-0.7) < 0.03":                          fmt.Sprintf(area, "x = 0.5625, y = 0.6875"),
		"hypot(x-0.55, y-0.7) < 0.004":                         fmt.Sprintf(area, "x = 0.5508, y = 0.6992"),
		"hypot(x-0.5, y-0.5) < 0.26":                           "",
		"hypot(x-0.5, y-0.5) < 0.26 or y > 0.99":               "",
		"abs(x-0.5) < 0.01 and y > 0.2":                        "",
		"x > 0.9 or hypot(x-0.18, y-0.18) < 0.03":              fmt.Sprintf(area, "x = 0.1875, y = 0.1875"),
		"x > 0.7 and abs(y - 0.31) < 0.01 or x == 1":           "",
		"abs(abs(x-0.55) - 0.03) < 0.01 and abs(y-0.5) < 0.3":  fmt.Sprintf(gap, "x = 0.55, y = 0.25"),
		"abs(abs(x-0.5) - 0.03) < 0.01 and abs(y-0.5) < 0.3":   "",
		"abs(abs(x-0.55) - 0.06) < 0.02 and abs(y-0.5) < 0.3":  fmt.Sprintf(gap, "x = 0.55, y = 0.25"),
		"abs(abs(x-0.55) - 0.075) < 0.02 and abs(y-0.5) < 0.3": "",
	} {
		p := open(t, config(9, 9, "float64", configs.Problem{Fixed: text, Initial: "x < 0.55 ? 1 : 2"}))
		var lines []string
		if want != "" {
			lines = []string{fmt.Sprintf("problem.fixed %q: %s", text, want)}
		}
		if got := p.Warnings(t.Context()); !slices.Equal(got, lines) {
			t.Errorf("got  %s\nwant %s", got, lines)
		}
	}
	p := open(t, config(9, 9, "float64", configs.Problem{Fixed: "hypot(x-0.5, y-0.7) < 0.03", Initial: "1",
		Left: "periodic", Right: "periodic", Top: "neumann(0)", Bottom: "neumann(0)"}))
	const want = `problem.fixed "hypot(x-0.5, y-0.7) < 0.03": the area around x = 0.5, y = 0.6875 lies between ` +
		`the lines of the mesh, and has no effect; take more points; no side has values, so nothing else determines ` +
		`the field`
	if err := p.Check(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
