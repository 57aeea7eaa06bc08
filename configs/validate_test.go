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
		conf.Solver.Why, conf.Run.Ranks = "", 4
		c.change(&conf)
		if err := Validate(conf); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// The working ranks are the most that solver.Partition accepts, also for the highest mesh; with one rank, a depth that
// it does not accept is refused.
func TestWorking(t *testing.T) {
	for ny := 3; ny < 100; ny++ {
		interior := solver.Stripe{Lo: 1, Hi: ny - 1}
		for ranks := 1; ranks < 15; ranks++ {
			for depth := 1; depth < 20; depth++ {
				c := Default()
				c.Grid.NY, c.Run.Ranks, c.Halo.Depth = ny, ranks, depth
				if err := Validate(c); (err == nil) != (depth <= ny-2) {
					t.Fatalf("ny %d, depth %d: %v", ny, depth, err)
				} else if err != nil {
					continue
				}
				working := c.Working()
				_, accepted := solver.Partition(interior, working, depth)
				_, more := solver.Partition(interior, working+1, depth)
				if working > ranks || accepted != nil || working < ranks && more == nil {
					t.Fatalf("ny %d, ranks %d, depth %d: %d work (%v, %v)", ny, ranks, depth, working, accepted, more)
				}
				if (c.Idle() == "") != (working == ranks) {
					t.Fatalf("%d of %d ranks work: %q", working, ranks, c.Idle())
				}
			}
		}
	}
	c := Default()
	c.Grid.NX, c.Grid.NY, c.Run.Ranks, c.Halo.Depth = 3, math.MaxInt32, math.MaxInt, 1<<20
	if n := c.Working(); n != 2047 || Validate(c) != nil {
		t.Errorf("%d ranks work, want 2047 (%v)", n, Validate(c))
	}
}

func TestIdle(t *testing.T) {
	for _, c := range []struct {
		ny, ranks, depth int
		method, want     string
	}{
		{40, 4, 0, Jacobi, ""},
		{40, 8, 0, Jacobi, "3 of 8 ranks stay idle: grid.ny 40 has rows for 5"},
		{40, 3, 0, Multigrid, "1 of 3 ranks stays idle: with solver.method multigrid, grid.ny 40 has rows for 2"},
		{64, 8, 8, Jacobi, "4 of 8 ranks stay idle: with halo.depth 8, grid.ny 64 has rows for 4"},
		{3, 2, 0, Multigrid, "1 of 2 ranks stays idle: with solver.method multigrid, grid.ny 3 has rows for 1"},
		{16384, math.MaxInt64, 0, Jacobi,
			"9223372036854773759 of 9223372036854775807 ranks stay idle: grid.ny 16384 has rows for 2048"},
	} {
		k := Default()
		k.Problem.Preset, k.Grid.NY, k.Run.Ranks, k.Halo.Depth, k.Solver.Method = "dirichlet", c.ny, c.ranks, c.depth,
			c.method
		if got := k.Idle(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestResolve(t *testing.T) {
	side := "sin(2 * float32(pi) * iy / (ny - 1))"
	for _, c := range []struct {
		p     Problem
		dtype string
		want  Problem
	}{
		{Problem{Preset: "gtc2019"}, "float32", Problem{Preset: "gtc2019", Left: side, Right: side, Top: "periodic",
			Bottom: "periodic", Initial: "0", Source: "0", Fixed: "false", Coefficient: "1", Screening: "0"}},
		{Problem{Preset: "gtc2019", Left: "1"}, "float64", Problem{Preset: "gtc2019", Left: "1",
			Right: "sin(2 * pi * iy / (ny - 1))", Top: "periodic", Bottom: "periodic", Initial: "0", Source: "0",
			Fixed: "false", Coefficient: "1", Screening: "0"}},
		{Problem{Preset: "dirichlet", Initial: "a.npy", Drawing: "a.png", Colours: "#ffffff"}, "float32",
			Problem{Preset: "dirichlet", Left: "0", Right: "0", Top: "1", Bottom: "0", Initial: "a.npy", Source: "0",
				Fixed: "false", Drawing: "a.png", Colours: "#ffffff", Coefficient: "1", Screening: "0"}},
	} {
		if got, err := c.p.Resolve(c.dtype); err != nil || got != c.want {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}
