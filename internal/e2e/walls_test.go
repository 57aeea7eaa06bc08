package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"jacobi/internal/compute/cpu/kernel"
)

// wallPairs are the kinds of two opposite walls; the verbs are the names of the walls.
var wallPairs = []string{
	"problem.%s=ix%%3 problem.%s=y-x",
	"problem.%s=1 problem.%s=neumann(-1)",
	"problem.%s=neumann(x+y) problem.%s=x",
	"problem.%s=neumann(1) problem.%s=neumann(2)",
	"problem.%s=periodic problem.%s=periodic",
}

// wallProblems returns a problem for each combination of walls, with and without source and fixed points, in each type:
// 200 problems.
func wallProblems() (problems [][]string) {
	for i := range 200 {
		sides, ends, source, fixed, double := i%5, i/5%5, i/25%2 == 1, i/50%2 == 1, i/100%2 == 1
		p := []string{"problem.preset=dirichlet", "grid.nx=67", "grid.ny=73", "problem.initial=sin(7*x)*y",
			"solver.max_iterations=101", "solver.tolerance=0", "output.picture=", "grid.height=0.7"}
		p = append(p, strings.Fields(fmt.Sprintf(wallPairs[sides], "left", "right"))...)
		p = append(p, strings.Fields(fmt.Sprintf(wallPairs[ends], "top", "bottom"))...)
		if source {
			p = append(p, "problem.source=cos(3*x)+ix%5")
		}
		if fixed {
			p = append(p, "problem.fixed=(ix+3*iy)%13==0")
		}
		if double {
			p = append(p, "grid.dtype=float64")
		}
		if !fixed && sides >= 3 && ends >= 3 {
			p = append(p, "problem.screening=5") // without it the solution is not unique
		}
		problems = append(problems, p)
	}
	return problems
}

// Walls, sources, fixed points and types give the same bits for any ranks, transport, depth and kernel. Ten of the 200
// problems, among them each kind of walls on both pairs of sides twice, run in ten ways; with WALLS=all each of the
// 200 runs in 12 ways. That each kernel gives the bits of the reference for all combinations, with any depth and for
// several ranks, is proven without processes (backendtest.OperatorCases).
func TestSameBitsForAllWalls(t *testing.T) {
	t.Parallel()
	type way struct {
		np   string
		keys []string
	}
	var ways []way
	for _, np := range []string{"1", "2", "3", "5", "8"} {
		for _, transport := range []string{"p2p", "nats"} {
			for _, depth := range []string{"1", "3", "auto"} {
				for _, name := range kernel.Names() {
					ways = append(ways, way{np, []string{"halo.transport=" + transport, "halo.depth=" + depth,
						"device.kernel=" + name}})
				}
			}
		}
	}
	step, each := 21, 1
	if os.Getenv("WALLS") == "all" {
		step, each = 1, 12
	}
	problems := wallProblems()
	for i := 0; i < len(problems); i += step {
		p := problems[i]
		want, _ := solve(t, append(set(append(p, "halo.depth=1", "device.kernel=portable")...), "-np", "1")...)
		for j := range each {
			w := ways[(i*7+j*31)%len(ways)]
			keys := append(p[:len(p):len(p)], w.keys...)
			if got, _ := solve(t, append(set(keys...), "-np", w.np)...); got != want {
				t.Errorf("%q, np %s: %d sweeps, field %s; want %d, %s; histories equal: %v", keys, w.np, got.sweeps,
					got.sha, want.sweeps, want.sha, got.history == want.history)
			}
		}
	}
}

// GPUs give the CPU's bits for all walls, with sources and fixed points, in each type.
func TestSameBitsForAllWallsOnGPUs(t *testing.T) {
	gpus := needGPU(t)
	problems := wallProblems()
	for i := 0; i < len(problems); i += 3 {
		p := problems[i]
		t.Run(strings.Join(p, " "), func(t *testing.T) {
			t.Parallel() // a process on a GPU starts slowly
			want, _ := solve(t, append(set(append(p, "device.backend=cpu", "halo.depth=1")...), "-np", "1")...)
			np := strconv.Itoa(1 + i/3%min(gpus+1, 4))
			depth := []string{"1", "5", "auto"}[i/3%3]
			keys := append(p[:len(p):len(p)], "device.backend=cuda", "halo.depth="+depth)
			if got, _ := solve(t, append(set(keys...), "-np", np)...); got != want {
				t.Errorf("np %s, depth %s: %d sweeps, field %s; want %d, %s; histories equal: %v", np, depth,
					got.sweeps, got.sha, want.sweeps, want.sha, got.history == want.history)
			}
		})
	}
}
