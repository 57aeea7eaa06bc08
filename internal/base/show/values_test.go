package show

import (
	"strings"
	"testing"
)

func TestValues(t *testing.T) {
	long := strings.Repeat("a", 299)
	for message, want := range map[string]string{
		`grid.nx "5 x": must be an integer`: `grid.nx "5 x": must be an integer`,
		`problem.left "` + long + ` b": column 1: unknown`: `problem.left "` + long[:119] + " … " + long[:37] +
			` b" (303 characters): column 1: unknown`,
		"unknown key " + long + " (--set)": "unknown key " + long[:120] + " … " + long[:40] +
			" (299 characters) (--set)",
		`a "quote that does not end`: `a "quote that does not end`,
	} {
		if got := Values(message); got != want {
			t.Errorf("%q became\n%q, want\n%q", message, got, want)
		}
	}
}
