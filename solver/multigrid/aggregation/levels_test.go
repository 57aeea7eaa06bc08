package aggregation

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"jacobi/solver"
)

// Where sets no longer grow, unknowns that their own excess determines are left out, so that the others come together:
// here points of a conductor that screening holds, each between others.
func TestLeaks(t *testing.T) {
	leak := func(x, y int) bool { return x > 64 && x%3 == 1 && y%3 == 1 }
	for _, share := range []float64{0, 0.5} {
		f := class{screening: 1e-4, leaks: leak, a: func(n int, r *rand.Rand) func(x, y int) float64 {
			return marked(n, func(x, y int) bool { return leak(x, y) || x <= 64 && r.Float64() < share }, 1, 1e6)
		}}.setUp(t, 193, 1)
		l := f.solver.levels
		if n := l.Levels[len(l.Levels)-1].Unknowns(); n > direct || l.Inverse == nil {
			t.Errorf("share %g: %d unknowns on the coarsest level, want at most %d, and an inverse", share, n, direct)
		}
		if cycles, rest := f.check(t, false); cycles > 18 || rest > 1e-6 {
			t.Errorf("share %g: %d cycles, updates of %g times the first ones", share, cycles, rest)
		}
	}
}

// The levels and the sets are the same for every division into parts and any number of threads.
func TestLevelsDoNotDependOnParts(t *testing.T) {
	for _, c := range classes(1e6) {
		p := c.of(69)
		alone := p.parts(t, 1)
		want := p.levels(t, 1, alone)
		for _, ends := range [][]int{{}, {32}, {8, 24, 32, 64}, {8, 16, 24, 32, 40, 48, 56}} {
			parts := p.parts(t, 3, ends...)
			if !reflect.DeepEqual(p.levels(t, 3, parts), want) {
				t.Errorf("%s, parts that end at %v: other levels", c.name, ends)
			}
			lo, in := p.mesh.Interior().Lo, p.mesh.Interior()
			for k, hi := range append(ends, in.Hi) {
				for y := lo - 4; y < hi+4; y++ {
					row, ok := p.mesh.Canonical(y)
					if ok && row >= in.Lo && row < in.Hi && !slices.Equal(parts[k].Sets(y), alone[0].Sets(row)) {
						t.Errorf("%s, parts that end at %v: other sets in row %d of part %d", c.name, ends, y, k)
					}
				}
				lo = hi
			}
		}
	}
}

// multiplied sets v to A x.
func multiplied(l *Level, v, x []float64) {
	l.residuals(v, make([]float64, len(v)), x, byLength(l.Begin), 0)
	for i, r := range v {
		v[i] = 0 - r
	}
}

// Level 1 is the sums of the equations of the points.
func TestFirstLevelIsSums(t *testing.T) {
	for _, c := range classes(1e6) {
		f := c.setUp(t, 41, 1)
		l := f.solver.levels.Levels[0]
		n := l.Unknowns()
		want := make([]float64, n*n) // the matrix
		u, r, zero := make([]float64, len(f.set)), make([]float64, len(f.set)), make([]float64, len(f.set))
		for j := range n {
			for i, set := range f.set {
				if u[i] = 0; set == int32(j) {
					u[i] = 1
				}
			}
			f.residual(r, zero, u)
			for i, set := range f.set {
				if set >= 0 {
					want[int(set)*n+j] -= r[i]
				}
			}
		}
		x, y := make([]float64, n), make([]float64, n)
		for j := range n {
			clear(x)
			x[j] = 1
			multiplied(&l, y, x)
			for i, v := range y {
				if math.Abs(v-want[i*n+j]) > 1e-6/l.Inverse[j] {
					t.Fatalf("%s: %g couples unknowns %d and %d, want %g", c.name, v, i, j, want[i*n+j])
				}
			}
		}
	}
}

// Every level is symmetric, and its unknowns are those of the sets of the level before.
func TestLevelsAreWellFormed(t *testing.T) {
	for _, c := range classes(1e8) {
		p := c.of(61)
		all := p.levels(t, 1, p.parts(t, 1)).Levels
		for k, l := range all {
			faces := map[[2]int32]float32{}
			for i := range int32(l.Unknowns()) {
				to := l.Neighbour[l.Begin[i]:l.Begin[i+1]]
				if !slices.IsSorted(to) || len(slices.Compact(slices.Clone(to))) != len(to) || slices.Contains(to, i) {
					t.Fatalf("%s, level %d: unknown %d has faces to %d", c.name, k+1, i, to)
				}
				for f := l.Begin[i]; f < l.Begin[i+1]; f++ {
					faces[[2]int32{i, l.Neighbour[f]}] = l.Face[f]
				}
			}
			for at, f := range faces {
				if faces[[2]int32{at[1], at[0]}] != f {
					t.Fatalf("%s, level %d: face %g from %d to %d is %g back", c.name, k+1, f, at[0], at[1],
						faces[[2]int32{at[1], at[0]}])
				}
			}
			if k+1 == len(all) {
				continue
			}
			var members []int32
			for s := range len(l.First) - 1 {
				of := l.Members[l.First[s]:l.First[s+1]]
				if len(of) < 1 || len(of) > largest || !slices.IsSorted(of) {
					t.Fatalf("%s, level %d: set %d has the members %d", c.name, k+1, s, of)
				}
				for _, m := range of {
					if l.Set[m] != int32(s) {
						t.Fatalf("%s, level %d: unknown %d of set %d is in set %d", c.name, k+1, m, s, l.Set[m])
					}
				}
				members = append(members, of...)
			}
			if n := all[k+1].Unknowns(); n != len(l.First)-1 {
				t.Fatalf("%s, level %d: %d sets, %d unknowns on the next level", c.name, k+1, len(l.First)-1, n)
			}
			slices.Sort(members)
			for i := range int32(l.Unknowns()) {
				_, in := slices.BinarySearch(members, i)
				if in != (l.Begin[i+1] > l.Begin[i]) || in != (l.Set[i] >= 0) {
					t.Fatalf("%s, level %d: unknown %d has %d faces, and the set %d", c.name, k+1, i,
						l.Begin[i+1]-l.Begin[i], l.Set[i])
				}
			}
		}
	}
}

// The inverse of the coarsest level is one, whatever the contrast; of a part that nothing holds, one unknown is 0.
func TestInverse(t *testing.T) {
	for _, c := range classes(1e8) {
		l := c.setUp(t, 33, 1).solver.levels
		v := l.Levels[len(l.Levels)-1]
		n := v.Unknowns()
		x, b := make([]float64, n), make([]float64, n)
		for j := range n {
			for i := range x {
				x[i] = l.Inverse[i*n+j]
			}
			multiplied(&v, b, x)
			for i, got := range b {
				want := 0.0
				if i == j {
					want = 1
				}
				rounding := 1e-14/v.Inverse[i]*slices.Max(x) + 1e-14
				if held := c.loose() && i == n-1; !held && math.Abs(got-want) > rounding {
					t.Fatalf("%s: column %d times the equations is %g at %d, want %g", c.name, j, got, i, want)
				}
			}
			if c.loose() && x[n-1] != 0 {
				t.Fatalf("%s: %g where 0 is held", c.name, x[n-1])
			}
		}
	}
}

// A solver gives the same bits on any number of threads, and a solution of 0 for 0.
func TestSolverDoesNotDependOnThreads(t *testing.T) {
	var want []float64
	for _, threads := range []int{1, 2, 7} {
		f := classes(1e6)[7].setUp(t, 193, threads)
		f.precondition(t, f.source(false))
		if threads == 1 {
			want = slices.Clone(f.x)
			if len(want) < 2*alone {
				t.Fatalf("%d unknowns, which one thread solves for", len(want))
			}
		}
		if !slices.Equal(f.x, want) {
			t.Errorf("%d threads: another solution", threads)
		}
		clear(f.b)
		if err := f.solver.Solve(context.Background(), f.x, f.b); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(f.x, func(v float64) bool { return v != 0 }) {
			t.Errorf("%d threads: the solution for 0 is not 0", threads)
		}
	}
}

// A cycle allocates nothing on one thread.
func TestSolveDoesNotAllocate(t *testing.T) {
	f := classes(1e6)[7].setUp(t, 129, 1)
	f.b[0] = 1
	if n := testing.AllocsPerRun(5, func() {
		if err := f.solver.Solve(context.Background(), f.x, f.b); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Work ends with its context.
func TestContextEnds(t *testing.T) {
	want := errors.New("the end")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(want)
	p := classes(1e6)[7].of(65)
	tiling := NewTiling(p.mesh, p.ratio)
	all := solver.Stripe{Hi: tiling.TileRows()}
	if _, err := tiling.Aggregate(ctx, p.read, all, all, 2); !errors.Is(err, want) {
		t.Errorf("Aggregate: %v", err)
	}
	s := p.levels(t, 1, p.parts(t, 1)).NewSolver(1)
	x := make([]float64, len(s.work[0].y))
	if err := s.Solve(ctx, x, x); !errors.Is(err, want) {
		t.Errorf("Solve: %v", err)
	}
}

// The error of a row that cannot be read names it.
func TestRowThatCannotBeRead(t *testing.T) {
	p := classes(1e6)[0].of(33)
	tiling := NewTiling(p.mesh, p.ratio)
	all := solver.Stripe{Hi: tiling.TileRows()}
	_, err := tiling.Aggregate(context.Background(), func(y int, to Row) error {
		if y == 17 {
			return errors.New("gone")
		}
		return p.read(y, to)
	}, all, all, 1)
	if err == nil || err.Error() != "aggregation: row 17: gone" {
		t.Errorf("error %v", err)
	}
}

// A part that is damaged is refused.
func TestDamagedParts(t *testing.T) {
	p := classes(1e6)[7].of(9) // 5 tiles in 5 rows, with walls around
	tiling := NewTiling(p.mesh, p.ratio)
	part := p.parts(t, 1)[0]
	first := &part.strips[0]
	n, own, down := first.unknowns(), len(first.own.to), len(first.down.to)
	tiles := len(first.tiles) - 1
	excess := header + tiles
	counts := excess + 4*n
	to := counts + n
	face := to + 4*own
	bytes := face + 4*own + n + 8*down
	nan, infinite := math.Float32bits(float32(math.NaN())), math.Float32bits(float32(math.Inf(1)))
	set := func(at int, v uint32) func([]byte) []byte {
		return func(data []byte) []byte { binary.LittleEndian.PutUint32(data[at:], v); return data }
	}
	for _, c := range []struct {
		damage func([]byte) []byte
		want   string
	}{
		{func(b []byte) []byte { return b[:bytes] }, "the parts have 1 rows of tiles, the mesh 4"},
		{func(b []byte) []byte { return append(b, 1, 2, 3) },
			"part 0, row of tiles 4: 3 bytes, of which a row of tiles takes at least 12"},
		{func(b []byte) []byte { return b[:bytes-1] },
			"part 0, row of tiles 0: 95 bytes, but 4 unknowns with 3 and 4 faces"},
		{set(0, 1<<31), "part 0, row of tiles 0: 352 bytes, but 2147483648 unknowns with 3 and 4 faces"},
		{set(excess, nan), "part 0, row of tiles 0: excess NaN of unknown 0: it must be finite and at least 0"},
		{set(excess, infinite), "part 0, row of tiles 0: excess +Inf of unknown 0: it must be finite and at least 0"},
		{set(excess, math.Float32bits(-1)),
			"part 0, row of tiles 0: excess -1 of unknown 0: it must be finite and at least 0"},
		{set(to, 0), "part 0, row of tiles 0: a face of unknown 0 leads to 0: allowed are 1 to 3"},
		{set(to, uint32(n)), "part 0, row of tiles 0: a face of unknown 0 leads to 4: allowed are 1 to 3"},
		{set(face, 0), "part 0, row of tiles 0: face 0 from unknown 0 to 1: it must be finite and above 0"},
		{set(face, infinite), "part 0, row of tiles 0: face +Inf from unknown 0 to 1: it must be finite and above 0"},
		{func(b []byte) []byte { b[header]++; return b }, "part 0, row of tiles 0: 4 unknowns, but 5 in its tiles"},
		{func(b []byte) []byte { b[counts]++; return b }, "part 0, row of tiles 0: 3 faces, but 4 of its unknowns"},
		{set(bytes-8*down, 99),
			"part 0, row of tiles 0, faces down: a face of unknown 0 leads to 99: allowed are 0 to 3"},
		{set(bytes-4, nan),
			"part 0, row of tiles 0, faces down: face NaN from unknown 3 to 3: it must be finite and above 0"},
	} {
		_, err := New(tiling, [][]byte{c.damage(part.Bytes())}, 1)
		if err == nil || err.Error() != "aggregation: "+c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// Every interior row belongs to one row of tiles, which belongs to the stripe that owns its first row.
func TestTiling(t *testing.T) {
	for _, w := range []solver.Walls{{}, {Top: neumann, Bottom: neumann}, {Top: periodic, Bottom: periodic}} {
		for _, ratio := range []float64{0.1, 1, 9} {
			for ny := 17; ny < 70; ny++ {
				m := solver.Mesh{NX: 5, NY: ny, Walls: w}
				tiling, in := NewTiling(m, ratio), m.Interior()
				next := in.Lo
				for k := range tiling.TileRows() {
					rows := tiling.Rows(k)
					if rows.Lo != next || rows.Rows() < 1 || rows.Rows() > tiling.shape.rows {
						t.Fatalf("walls %v, %d rows: row of tiles %d has %v, after %d", w, ny, k, rows, next)
					}
					for y := rows.Lo; y < rows.Hi; y++ {
						if tiling.TileRow(y) != k {
							t.Fatalf("walls %v, %d rows: row %d is in %d, not in %d", w, ny, y, tiling.TileRow(y), k)
						}
						if n := ny - 2; m.PeriodicRows() && (tiling.TileRow(y-n) != k-tiling.TileRows() ||
							tiling.Rows(k+tiling.TileRows()) != solver.Stripe{Lo: rows.Lo + n, Hi: rows.Hi + n}) {
							t.Fatalf("walls %v, %d rows: row %d is in %d one round before", w, ny, y,
								tiling.TileRow(y-n))
						}
					}
					next = rows.Hi
				}
				end := 0
				for _, s := range []solver.Stripe{{Lo: in.Lo, Hi: 8}, {Lo: 8, Hi: 16}, {Lo: 16, Hi: in.Hi}} {
					own := tiling.Owned(s)
					if own.Lo != end {
						t.Fatalf("walls %v, %d rows: rows of tiles %v begin after %d", w, ny, own, end)
					}
					end = own.Hi
					for k := own.Lo; k < own.Hi; k++ {
						if lo := tiling.Rows(k).Lo; lo < s.Lo || lo >= s.Hi {
							t.Fatalf("walls %v, %d rows: %v owns row of tiles %d, which begins at %d", w, ny, s, k, lo)
						}
					}
				}
				if next != in.Hi || end != tiling.TileRows() {
					t.Fatalf("walls %v, %d rows: tiles end at %d, owned ones at %d", w, ny, next, end)
				}
			}
		}
	}
}
