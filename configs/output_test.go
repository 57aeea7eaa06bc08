package configs

import (
	"fmt"
	"strings"
	"testing"

	"jacobi/solver"
)

func TestParseProbes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "[]",
		" ; ":                                "error",
		"a=(0.5,0.25)":                       "[{a [{50 10}]}]",
		"a=(0,0);b=( 1 , 1 ) ; c = [100,40]": "[{a [{0 0}]} {b [{100 40}]} {c [{100 40}]}]",
		"cut=(0,0.5)..(1,0.5)/5":             "[{cut [{0 20} {25 20} {50 20} {75 20} {100 20}]}]",
		"up=[3,4] .. [3,0] / 2":              "[{up [{3 4} {3 0}]}]",
		"down=[3,4]..[2,1]":                  "[{down [{3 4} {3 3} {2 2} {2 1}]}]",
		"one=[3,4]..[3,4]":                   "[{one [{3 4}]}]",
		"a=[1e1,2]":                          "error",
		"a=(0.5,1.01)":                       "error",
		"a=(nan,0)":                          "error",
		"a=(0x1,0)":                          "error",
		"a=[101,2]":                          "error",
		"a=[-1,2]":                           "error",
		"a=(0.5]":                            "error",
		"a=(0.5)":                            "error",
		"1=(0,0)":                            "error",
		"a,b=(0,0)":                          "error",
		"a=(0,0)/3":                          "error",
		"a=[0,0]..[3,0]/5":                   "error",
		"a=[0,0]..[3,0]/1":                   "error",
		"a=(0,0)..":                          "error",
		strings.Repeat("a", 65) + "=(0,0)":   "error",
		strings.Repeat("a", 64) + "=(0,0)..[0,0]": "[{" + strings.Repeat("a", 64) + " [{0 0}]}]",
	} {
		got, err := ParseProbes(text, solver.Mesh{NX: 101, NY: 41})
		if said := fmt.Sprint(got); said != want && !(want == "error" && err != nil) {
			t.Errorf("%q: %s, %v; want %s", text, said, err, want)
		}
	}
	for text, want := range map[string]string{
		"a=(0,2)":            `"a=(0,2)": x and y must be from 0 to 1, ix from 0 to 100 and iy from 0 to 40`,
		"a=(0,0); a=(1,1)":   `"a=(1,1)": there is a probe of this name already`,
		"a=[0,0]..[10,3]/12": `"a=[0,0]..[10,3]/12": 12 points: the line has 2 to 11`,
		"a":                  `"a": must be NAME=(x,y), NAME=[ix,iy] or a line such as NAME=(0,0.5)..(1,0.5)/9`,
	} {
		if _, err := ParseProbes(text, solver.Mesh{NX: 101, NY: 41}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	const long = `"b=[0,0]..[0,4999]": at most 10000 points are allowed in all`
	_, err := ParseProbes("a=(0,0)..(1,0); b=[0,0]..[0,4999]", solver.Mesh{NX: 5001, NY: 5000})
	if err == nil || err.Error() != long {
		t.Errorf("%v, want %s", err, long)
	}
	if _, err := ParseProbes("a=(0,0)..(1,1)", solver.Mesh{NX: 1<<31 - 1, NY: 3}); err == nil {
		t.Error("a line of 2147483647 points")
	}
}

// Between periodic sides x = 1 is the seam, the last column but one, and x times the width is the distance everywhere.
func TestProbesBetweenPeriodicSides(t *testing.T) {
	m := solver.Mesh{NX: 102, NY: 41, Walls: solver.Walls{Left: solver.Periodic, Right: solver.Periodic}}
	got, err := ParseProbes("a=(0,0); b=(0.5,0.5); c=(1,1)", m)
	if said := fmt.Sprint(got); err != nil || said != "[{a [{0 0}]} {b [{50 20}]} {c [{100 40}]}]" {
		t.Errorf("%s, %v", said, err)
	}
}
