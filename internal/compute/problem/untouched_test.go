package problem

import (
	"fmt"
	"testing"

	"jacobi/configs"
)

// A fixed area that lies between points of the mesh is said, with its place. One that a point touches is not, however
// little of it lies elsewhere.
func TestUntouchedAreas(t *testing.T) {
	for text, want := range map[string]string{
		"abs(y-0.3) < 0.02":                          "x = 0.0625, y = 0.3125",
		"abs(y-0.3) < 0.02 and abs(x-0.5) < 0.2":     "x = 0.3125, y = 0.3125",
		"hypot(x-0.55, y-0.7) < 0.03":                "x = 0.5625, y = 0.6875",
		"hypot(x-0.55, y-0.7) < 0.004":               "x = 0.5508, y = 0.6992",
		"hypot(x-0.5, y-0.5) < 0.26":                 "",
		"hypot(x-0.5, y-0.5) < 0.26 or y > 0.99":     "",
		"abs(x-0.5) < 0.01 and y > 0.2":              "",
		"x > 0.9 or hypot(x-0.18, y-0.18) < 0.03":    "x = 0.1875, y = 0.1875",
		"x > 0.7 and abs(y - 0.31) < 0.01 or x == 1": "x = 0.7012, y = 0.3027",
	} {
		p := open(t, config(9, 9, "float64", configs.Problem{Fixed: text}))
		if want != "" {
			want = fmt.Sprintf("problem.fixed %q: the area around %s lies between points of the mesh, and has no "+
				"effect; take more points", text, want)
		}
		if got := p.untouched(t.Context()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
