package multigrid_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// TestLevels checks the intervals of the levels: the first coarser one of an axis is the one that can be halved down to
// 5 to 8 intervals, and an axis with the longer spacing waits for the other one.
func TestLevels(t *testing.T) {
	ring := solver.Walls{Top: solver.Periodic, Bottom: solver.Periodic}
	for _, c := range []struct {
		nx, ny int
		walls  solver.Walls
		blend  float64
		want   string
	}{
		{16384, 16384, ring, 0, "16383x16382 8192x8192 4096x4096 2048x2048 1024x1024 512x512 256x256 128x128 64x64 " +
			"32x32 16x16 8x8"},
		{1000, 1000, solver.Walls{}, 0, "999x999 512x512 256x256 128x128 64x64 32x32 16x16 8x8"},
		{4095, 31, solver.Walls{}, 0, "4094x30 2048x16 1024x8 512x8"},
		{130, 130, solver.Walls{}, 0.9, "129x129 129x80 129x40 80x20 40x10 20x5 10x5"},
		{3, 3, solver.Walls{}, 0, "2x2 2x2"},
		{8, 3, ring, 0, "7x1 7x1"},
	} {
		op := solver.Operator{}
		if c.blend != 0 {
			op = solver.Operator{Scale: 0.5, Blend: c.blend}
		}
		mesh := solver.Mesh{NX: c.nx, NY: c.ny, DType: solver.Float64, Walls: c.walls}
		p, err := multigrid.NewPlan(mesh, op)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range p.Levels {
			ny := l.Mesh.NY - 1
			if c.walls == ring {
				ny--
			}
			got = append(got, fmt.Sprintf("%dx%d", l.Mesh.NX-1, ny))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%d x %d: levels %s, want %s", c.nx, c.ny, s, c.want)
		}
	}
}

// TestWeightedLevels checks the intervals of the levels of a weighted operator, which halve as long as there are more
// than 8, and that levels whose cycles are done twice are held as a whole.
func TestWeightedLevels(t *testing.T) {
	ring := solver.Walls{Top: solver.Periodic, Bottom: solver.Periodic}
	for _, c := range []struct {
		nx, ny       int
		walls        solver.Walls
		ratio        float64
		want         string
		agglomerated int
	}{
		{1000, 1001, solver.Walls{}, 1, "999x1000 500x500 250x250 125x125 63x63 32x32 16x16 8x8", 4},
		{131, 131, ring, 1, "130x129 65x65 33x33 17x17 9x9 5x5", 1},
		{130, 130, solver.Walls{}, 9, "129x129 129x65 129x33 65x17 33x9 17x5 9x5", 2},
		{3, 3, solver.Walls{}, 1, "2x2 2x2", 1},
	} {
		mesh := solver.Mesh{NX: c.nx, NY: c.ny, DType: solver.Float64, Walls: c.walls}
		p, err := multigrid.NewPlan(mesh, solver.Operator{Weighted: true, Ratio: c.ratio, Values: material{}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range p.Levels {
			got = append(got, fmt.Sprintf("%dx%d", solver.Intervals(l.Mesh.NX, c.walls.Left),
				solver.Intervals(l.Mesh.NY, c.walls.Top)))
		}
		stripes, err := solver.Partition(mesh.Interior(), min(2, c.ny/4+1), 1)
		if err != nil {
			t.Fatal(err)
		}
		_, agglomerated := p.Divide(stripes, 0)
		if s := strings.Join(got, " "); s != c.want || agglomerated != c.agglomerated {
			t.Errorf("%d x %d: levels %s, whole from %d on, want %s, %d", c.nx, c.ny, s, agglomerated, c.want,
				c.agglomerated)
		}
	}
}

// TestHalving checks that each coarse point lies on the fine point that lies on it, and that the points around it are
// those that lie on it or beside it.
func TestHalving(t *testing.T) {
	for _, h := range []multigrid.Halving{{Fine: 16, Coarse: 8}, {Fine: 15, Coarse: 8}, {Fine: 9, Coarse: 5},
		{Fine: 7, Coarse: 7}, {Fine: 16, Coarse: 8, Periodic: true}, {Fine: 17, Coarse: 9, Periodic: true},
		{Fine: 2, Coarse: 2, Periodic: true}} {
		first, last := 0, h.Coarse
		if h.Periodic {
			first, last = -h.Coarse-3, 2*h.Coarse+3
		}
		for I := first; I <= last; I++ {
			on := h.On(I)
			if at, between := h.At(on); at != I || between {
				t.Errorf("%+v: coarse point %d lies on %d, which lies on %d (between: %t)", h, I, on, at, between)
			}
			lo, hi := h.Around(I)
			for i := lo - 1; i <= hi; i++ {
				if !h.Periodic && (i < 0 || i > h.Fine) {
					continue
				}
				at, between := h.At(i)
				touches := at == I || between && at+1 == I
				if inside := i >= lo && i < hi; touches && !inside {
					t.Errorf("%+v: point %d touches %d and is not around it", h, i, I)
				}
				if next, also := h.At(i + 1); i+1 <= h.Fine && (next < at || next > at+1 || between && also) {
					t.Errorf("%+v: point %d lies on %d, point %d on %d", h, i, at, i+1, next)
				}
			}
		}
	}
}

// TestWeights compares the weights with their formula.
func TestWeights(t *testing.T) {
	for i, w := range multigrid.Weights() {
		if want := 1 / (1 - math.Cos(2*math.Pi*float64(i+1)/9)); math.Abs(w-want) > 1e-14 {
			t.Errorf("weight %d is %v, want %v", i, w, want)
		}
	}
}

// TestAxis checks for many sizes and all walls that the restriction is the transposed interpolation times the ratio of
// the intervals, with half weights at Neumann walls, and that its weights add up to about 1.
func TestAxis(t *testing.T) {
	for _, walls := range [][2]solver.Wall{{}, {solver.Neumann, solver.Dirichlet}, {solver.Neumann, solver.Neumann},
		{solver.Periodic, solver.Periodic}} {
		for _, n := range [][2]int{{16, 8}, {15, 8}, {9, 5}, {999, 512}, {7, 7}, {2, 2}} {
			a := multigrid.Axis{Fine: n[0], Coarse: n[1], Low: walls[0], High: walls[1]}
			for I := range n[1] + 1 {
				first, end := a.Around(I)
				sum := 0.0
				for i := first; i < end; i++ {
					at, w := a.Between(i)
					if at != I {
						w = 1 - w
						at++
					}
					if at == I {
						w = 1 - w
					}
					want := float64(w) * float64(n[1]) / float64(n[0])
					wall := I == 0 && walls[0] == solver.Neumann || I == n[1] && walls[1] == solver.Neumann
					if wall && i*n[1] != I*n[0] {
						want *= 2
					}
					if got := float64(a.Weight(I, i)); math.Abs(got-want) > 1e-6 {
						t.Errorf("%+v: weight of %d for %d is %v, want %v", a, i, I, got, want)
					}
					if !wall || i >= 0 && i <= n[0] {
						sum += float64(a.Weight(I, i))
					}
				}
				if end-first > multigrid.Taps || math.Abs(sum-1) > 0.35 {
					t.Errorf("%+v: %d taps for %d, whose weights add up to %v", a, end-first, I, sum)
				}
			}
		}
	}
}

// Larger levels do their cycles twice where materials are unlike, and all ranks hold these levels as a whole.
func TestLevelsThatDoCyclesTwice(t *testing.T) {
	mesh := solver.Mesh{NX: 1025, NY: 1025, DType: solver.Float64}
	for _, c := range []struct {
		contrast     float64
		times        []int
		agglomerated int
	}{
		{0, []int{1, 1, 1, 1, 2, 2, 2, 1}, 4},
		{math.Nextafter(50, 0), []int{1, 1, 1, 1, 2, 2, 2, 1}, 4},
		{50, []int{1, 1, 2, 2, 2, 1, 1, 1}, 2},
		{math.Inf(1), []int{1, 1, 2, 2, 2, 1, 1, 1}, 2},
	} {
		op := solver.Operator{Weighted: true, Ratio: 1, Contrast: c.contrast, Values: material{}}
		p, err := multigrid.NewPlan(mesh, op)
		if err != nil {
			t.Fatal(err)
		}
		stripes, err := solver.Partition(mesh.Interior(), 2, 1)
		if err != nil {
			t.Fatal(err)
		}
		_, agglomerated := p.Divide(stripes, 0)
		var times []int
		for level := range p.Levels {
			times = append(times, p.CycleIndex(level))
		}
		if !slices.Equal(times, c.times) || agglomerated != c.agglomerated {
			t.Errorf("contrast %v: cycles %v, whole from %d on, want %v, %d", c.contrast, times, agglomerated, c.times,
				c.agglomerated)
		}
	}
}
