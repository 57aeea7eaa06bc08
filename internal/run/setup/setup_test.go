package setup

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"jacobi/configs"
	"jacobi/cuda"
	"jacobi/solver"
	"jacobi/solver/methods"
	"jacobi/solver/multigrid"
)

// The depth of the keys counts. Without one it is what the devices prefer, but no more rows than the lowest stripe has,
// and always one.
func TestDepthOf(t *testing.T) {
	for _, c := range []struct {
		ny, ranks, key, preferred, want int
	}{
		{98, 3, 0, 12, 12}, {98, 3, 0, 40, 31}, {98, 3, 24, 12, 24}, {98, 3, 0, 0, 1}, {3, 9, 0, 16, 1},
		{40, 8, 0, 16, 7},
	} {
		k := configs.Default()
		k.Problem.Preset, k.Grid.NX, k.Grid.NY, k.Run.Ranks, k.Halo.Depth = "dirichlet", 66, c.ny, c.ranks, c.key
		got, auto := DepthOf(k, solver.Mesh{NX: 66, NY: c.ny}, c.preferred)
		if got != (Depth{Rows: c.want, Sweeps: c.want}) || auto != (c.key == 0) {
			t.Errorf("%+v: %+v, auto %t", c, got, auto)
		}
	}
}

// All ranks compute the same stripes and depth, and each its own stripe and neighbours.
func TestStripesAndNeighbours(t *testing.T) {
	want := []solver.Stripe{{Lo: 1, Hi: 32}, {Lo: 32, Hi: 64}, {Lo: 64, Hi: 97}}
	for _, periodic := range []bool{false, true} {
		mesh := solver.Mesh{NX: 66, NY: 98, DType: solver.Float64, Walls: solver.WrapRows(periodic)}
		for _, o := range []Options{
			{Mesh: mesh, Ranks: 3, Depth: Depth{Rows: 24, Sweeps: 24}, MaxSweeps: 16},
			{Mesh: mesh, Ranks: 3, Depth: Depth{Rows: 8, Sweeps: 8}, Method: methods.Of(methods.Multigrid)},
		} {
			s, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			if sweeps := map[bool]int{false: 16, true: 1}[o.Method.Levels]; s.MaxSweeps != sweeps {
				t.Errorf("%d sweeps a pass, want %d", s.MaxSweeps, sweeps)
			}
			for rank := range want {
				l := s.Layout(rank)
				if n := [2]bool{periodic || rank > 0, periodic || rank < 2}; l.Neighbour != n ||
					l.Stripe != want[rank] || l.Depth != o.Depth.Rows {
					t.Errorf("rank %d, periodic %t: %+v, want neighbours %v and rows %v", rank, periodic, l, n,
						want[rank])
				}
			}
			if o.Ranks, o.Weights = 1, []float64{1}; !slices.Equal(s.Stripes, want) {
				t.Errorf("stripes %v, want %v", s.Stripes, want)
			}
			alone, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			ring := periodic && !o.Method.Levels
			if n := alone.Layout(0).Neighbour; n != [2]bool{ring, ring} {
				t.Errorf("multigrid %t, periodic %t: a rank alone has the neighbours %v", o.Method.Levels, periodic, n)
			}
		}
	}
}

// A depth that does not fit the stripes is refused.
func TestDepthBeyondTheStripes(t *testing.T) {
	mesh := solver.Mesh{NX: 66, NY: 98, DType: solver.Float64}
	_, err := New(Options{Mesh: mesh, Ranks: 3, Depth: Depth{Rows: 33, Sweeps: 33}, MaxSweeps: math.MaxInt})
	_, want := solver.Partition(mesh.Interior(), 3, 33)
	if err == nil || err.Error() != want.Error() {
		t.Errorf("depth 33: %v, want %v", err, want)
	}
}

// Ranks that write into each other's memory hold more of the levels as a whole.
func TestLevels(t *testing.T) {
	mesh := solver.Mesh{NX: 2049, NY: 2049, DType: solver.Float64}
	var whole []int
	for _, all := range []bool{false, true} {
		s, err := New(Options{Mesh: mesh, Ranks: 2, Depth: Depth{Rows: 8, Sweeps: 8},
			Method: methods.Of(methods.Multigrid), ReachAll: all})
		if err != nil {
			t.Fatal(err)
		}
		l := s.LevelLayout(1)
		points := map[bool]int{false: multigrid.AgglomeratedPoints, true: cuda.GatheredPoints}[all]
		first := s.Levels.Agglomerated
		if s.Levels.Points != points || l.Agglomerated != first || len(s.Levels.Stripes) != first {
			t.Errorf("levels up to %d points and from %d on are whole, want %d points; %d are divided", s.Levels.Points,
				l.Agglomerated, points, len(s.Levels.Stripes))
		}
		whole = append(whole, first)
	}
	if got := fmt.Sprint(whole); got != "[3 1]" {
		t.Errorf("the levels are whole from %s on, want [3 1]", got)
	}
}

// Ranks on other nodes work where their GPUs save more time than the rows take, where the memory of the first node is
// too small, and where a key says so.
func TestWorking(t *testing.T) {
	h200, slow := GPUs{Count: 4, Bytes: 141e9, Rate: 4.9e12}, GPUs{Count: 4, Bytes: 16e9, Rate: 0.32e12}
	for _, c := range []struct {
		n, ranks, near int
		gpus           GPUs
		change         func(*configs.Config)
		want           int
	}{
		{4096, 2, 1, h200, nil, 1},
		{16384, 2, 1, h200, nil, 1},
		{65536, 2, 1, h200, nil, 2},
		{16384, 8, 4, h200, nil, 4},
		{16384, 4, 4, h200, nil, 4},
		{2048, 2, 1, slow, nil, 1},
		{16384, 2, 1, slow, nil, 2},
		{16384, 2, 1, GPUs{Count: 1, Bytes: 5e9, Rate: 4.9e12}, nil, 2},
		{16384, 3, 2, GPUs{Count: 2, Bytes: 6e9, Rate: 4.9e12}, nil, 2},
		{16384, 3, 2, GPUs{Count: 1, Bytes: 6e9, Rate: 4.9e12}, nil, 3},
		{4096, 2, 1, GPUs{Count: 1, Bytes: 141e9}, nil, 2},
		{4096, 2, 1, h200, func(c *configs.Config) { c.Halo.Transport = "nats" }, 2},
		{4096, 2, 1, h200, func(c *configs.Config) { c.Halo.Transport = "direct" }, 2},
		{4096, 2, 1, h200, func(c *configs.Config) { c.Run.Balance = "1,1" }, 2},
		{4096, 2, 1, h200, func(c *configs.Config) { c.Solver.Method = configs.Jacobi }, 2},
	} {
		k := configs.Default()
		k.Problem.Preset, k.Grid.NX, k.Grid.NY, k.Run.Ranks = "dirichlet", c.n, c.n, c.ranks
		k.Solver.Method = configs.Multigrid
		if c.change != nil {
			c.change(&k)
		}
		mesh := solver.Mesh{NX: c.n, NY: c.n, DType: solver.Float64}
		got, err := Working(k, mesh, solver.Operator{}, c.ranks, c.near, c.gpus)
		if err != nil || got != c.want {
			t.Errorf("%d points a side, %d of %d ranks near %+v: %d work, %v; want %d", c.n, c.near, c.ranks, c.gpus,
				got, err, c.want)
		}
	}
}
