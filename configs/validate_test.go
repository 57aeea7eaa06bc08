package configs

import (
	"math"
	"strings"
	"testing"

	"jacobi/solver"
)

func TestValidateAccepts(t *testing.T) {
	c := odd
	c.Halo.Depth, c.Solver.NormEvery = 0, 1 // which multigrid lacks
	if err := Validate(c); err != nil {
		t.Error(err)
	}
	c = Default()
	c.Run.Name = strings.Repeat("ü", 200)
	c.Problem.Initial = "x\n+ y"
	c.Solver.Tolerance = 0
	c.Output = Output{Dir: ".", PictureScale: "sqrt"}
	c.Checkpoint = Checkpoint{Every: Interval{Sweeps: 1}, Dir: "x", Keep: 1, Resume: "y"}
	c.Grid.NX, c.Grid.NY, c.Run.Ranks = 3, 3, 1
	if err := Validate(c); err != nil {
		t.Error(err)
	}
}

func TestValidateRefuses(t *testing.T) {
	for _, c := range invalid {
		conf := Default()
		conf.Solver.Why = ""
		c.change(&conf)
		if err := Validate(conf); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// Validate accepts the partitions that solver.Partition accepts, also for the highest mesh.
func TestValidatePartition(t *testing.T) {
	for ny := 3; ny < 100; ny++ {
		for ranks := 1; ranks < 15; ranks++ {
			for depth := 1; depth < 20; depth++ {
				c := Default()
				c.Grid.NY, c.Run.Ranks, c.Halo.Depth = ny, ranks, depth
				stripes, perr := solver.Partition(solver.Stripe{Lo: 1, Hi: ny - 1}, ranks, depth)
				if err := Validate(c); (err == nil) != (perr == nil) {
					t.Fatalf("ny %d, ranks %d, depth %d: %v, Partition %v", ny, ranks, depth, err, perr)
				}
				low := ny
				for _, s := range stripes {
					low = min(low, s.Rows())
				}
				if perr == nil && low != solver.MinRows(solver.Stripe{Lo: 1, Hi: ny - 1}, ranks) {
					t.Fatalf("ny %d, ranks %d: lowest stripe %d rows, MinRows says %d", ny, ranks, low,
						solver.MinRows(solver.Stripe{Lo: 1, Hi: ny - 1}, ranks))
				}
			}
		}
	}
	c := Default()
	c.Grid.NX, c.Grid.NY, c.Run.Ranks, c.Halo.Depth = 3, math.MaxInt32, 1<<28, 1<<20
	want := "halo.depth 1048576: with run.ranks 268435456 on grid.ny 2147483647 the lowest stripe has 6 rows; 1 " +
		"to 6 are allowed, or run.ranks up to 2047"
	if err := Validate(c); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestResolve(t *testing.T) {
	side := "sin(2 * float32(pi) * iy / (ny - 1))"
	for _, c := range []struct {
		p     Problem
		dtype string
		want  Problem
	}{
		{Problem{Preset: "gtc2019"}, "float32", Problem{"gtc2019", side, side, "periodic", "periodic", "0", "0",
			"false", 0}},
		{Problem{Preset: "gtc2019", Left: "1"}, "float64",
			Problem{"gtc2019", "1", "sin(2 * pi * iy / (ny - 1))", "periodic", "periodic", "0", "0", "false", 0}},
		{Problem{Preset: "dirichlet", Initial: "a.npy"}, "float32", Problem{"dirichlet", "0", "0", "1", "0", "a.npy",
			"0", "false",
			0}},
	} {
		if got, err := c.p.Resolve(c.dtype); err != nil || got != c.want {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}
