package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jacobi/internal/compute/cpu/kernel"
)

// materials is a problem with a hole, two materials, a screening of points, a Robin wall and fixed points.
var materials = []string{"grid.nx=140", "grid.ny=97", "grid.dtype=float64", "solver.relative_tolerance=1e-9",
	"solver.max_iterations=100", "problem.coefficient=(x-0.6)**2 + (y-0.5)**2 < 0.02 ? 0 : x < 0.3 ? 100 : 1",
	"problem.left=1", "problem.right=robin(2, y)", "problem.top=neumann(0)", "problem.bottom=0",
	"problem.screening=y < 0.2 ? 3 : 0", "problem.source=x", "problem.initial=0.5",
	"problem.fixed=abs(x-0.4) < 0.01 && y > 0.7"}

// sweeping are the keys of runs that sweep problems of all kinds.
func sweeping(problem ...string) []string {
	return append([]string{"grid.nx=131", "grid.ny=139", "solver.tolerance=0", "solver.max_iterations=100"}, problem...)
}

// problemsOfAllKinds have sources, spacings, screening, fixed points, materials and every kind of wall between them.
var problemsOfAllKinds = map[string][]string{
	"between Neumann walls": sweeping("problem.preset=dirichlet", "problem.top=neumann(1)",
		"problem.bottom=neumann(-x)", "problem.left=neumann(0)", "problem.right=0", "problem.source=sin(9*x)*y",
		"grid.height=2", "problem.fixed=hypot(x-0.4, y-0.5) < 0.2", "problem.initial=x"),
	"between periodic sides": sweeping("problem.preset=gtc2019", "problem.left=periodic", "problem.right=periodic",
		"problem.screening=40", "problem.source=ix%7-iy%5", "grid.dtype=float64", "problem.initial=y"),
	"around islands": sweeping("problem.preset=dirichlet", "problem.left=periodic", "problem.right=periodic",
		"problem.bottom=neumann(0)", "problem.fixed=(ix + 3*iy) % 11 == 0", "problem.initial=sin(5*x)"),
	"between values": sweeping("problem.preset=dirichlet", "problem.source=1", "problem.left=y",
		"problem.fixed=ix > iy"),
	"on a ring": sweeping("problem.preset=gtc2019", "problem.right=neumann(1)", "grid.width=3", "grid.height=1"),
	"materials": materials,
	"cycles":    with(materials, "solver.method=multigrid"),
	"porous":    sweeping(with(porous, "problem.preset=dirichlet", "solver.method=jacobi")...),
}

// porous is a picture of a porous medium with 13 islands, across which stripes meet.
var porous = []string{"problem.left=periodic", "problem.right=periodic", "problem.bottom=robin(1, 0)",
	"problem.initial=y", "problem.coefficient=" +
		"sin(1.7*ix) + sin(1.3*iy) + sin(0.7*ix + 1.1*iy) + sin(1.9*ix - 1.3*iy) < -0.3 ? 0 : 1 + x"}

// Every operator and wall gives the same bits for any ranks, depth, transport and kernel, and so do its results. A run
// goes on from a checkpoint with other ranks, and ends with the same bits.
func TestEveryOperatorGivesTheSameBits(t *testing.T) {
	t.Parallel()
	for name, problem := range problemsOfAllKinds {
		t.Run(name, func(t *testing.T) {
			keys := with(problem, "output.picture=")
			every, half, shallow := 25, 60, "halo.depth=1"
			ways := [][]string{{"1", "halo.depth=16"}, {"3", "halo.depth=7 halo.transport=p2p"},
				{"5", "halo.transport=nats"}, {"8", "halo.depth=auto device.threads=2"}}
			if name == "cycles" {
				every, half, shallow = 2, 4, "halo.depth=auto"
				ways = [][]string{{"2", "halo.transport=nats"}, {"3", "halo.transport=p2p"},
					{"8", "halo.transport=nats"}}
			}
			want, first := solve(t, onRanks(1, with(keys, shallow, "device.kernel=portable")...)...)
			if name == "cycles" && (want.reason != "converged" || want.sweeps > 12) {
				t.Errorf("%d cycles (%s)", want.sweeps, want.reason)
			}
			if slices.Contains(problem, materials[0]) {
				for _, name := range kernel.Names() {
					ways = append(ways, []string{"1", "device.kernel=" + name})
				}
			}
			for _, w := range ways {
				got, rep := solve(t, onRanks(w[0], with(keys, strings.Fields(w[1])...)...)...)
				same(t, got, want, w)
				if a, b := resultText(t, rep), resultText(t, first); a != b {
					t.Errorf("%q: results %s, want %s", w, a, b)
				}
			}
			dir := filepath.Join(t.TempDir(), "checkpoints")
			solve(t, onRanks(3, with(keys, fmt.Sprint("solver.max_iterations=", half),
				fmt.Sprint("checkpoint.every=", every), "checkpoint.dir="+dir)...)...)
			got, rep := solve(t, append(onRanks(2, keys...), "--resume", dir)...)
			if same(t, got, want, "resumed"); rep.ResumedAfter != half {
				t.Errorf("resumed after %d, want %d", rep.ResumedAfter, half)
			}
		})
	}
}

// resultText returns the results of a report as text.
func resultText(t *testing.T, r report) string {
	t.Helper()
	if r.Results == nil {
		t.Fatal("the report has no results")
	}
	var lines []string
	for _, line := range r.Results.Lines() {
		lines = append(lines, line[1])
	}
	return strings.Join(lines, "; ")
}

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
		want, _ := solve(t, onRanks(1, with(p, "halo.depth=1", "device.kernel=portable")...)...)
		for j := range each {
			w := ways[(i*7+j*31)%len(ways)]
			got, _ := solve(t, onRanks(w.np, with(p, w.keys...)...)...)
			same(t, got, want, p, w)
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
			want, _ := solve(t, onRanks(1, with(p, "device.backend=cpu", "halo.depth=1")...)...)
			np := 1 + i/3%min(gpus+1, 4)
			keys := with(p, "device.backend=cuda", "halo.depth="+[]string{"1", "5", "auto"}[i/3%3])
			got, _ := solve(t, onRanks(np, keys...)...)
			same(t, got, want, np, keys)
		})
	}
}
