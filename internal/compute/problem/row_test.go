package problem

import (
	"math"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/elementary"
	"jacobi/solver"
)

// Rows are right for widths below, at and above multiples of a chunk.
func TestRowChunks(t *testing.T) {
	for _, nx := range []int{3, chunk, chunk + 1, chunk + 2, chunk + 3, 2*chunk + 2, 1999} {
		p := open(t, config(nx, 4, "float32", configs.Problem{Initial: "ix + 0.25 * y", Top: "7", Left: "1.1"}))
		for iy, got := range field(t, p) {
			for ix, v := range got[1 : nx-1] {
				want := []float64{7, float64(float32(float64(ix+1) + 0.25*(1.0/3))),
					float64(float32(float64(ix+1) + 0.25*(2.0/3))), 0}[iy]
				if v != want {
					t.Fatalf("nx %d, row %d, column %d: %v, want %v", nx, iy, ix+1, v, want)
				}
			}
			if got[0] != float64(float32(1.1)) || got[nx-1] != 0 {
				t.Fatalf("nx %d, row %d: sides %v and %v", nx, iy, got[0], got[nx-1])
			}
		}
	}
}

// Values that depend only on x are cached for all rows, and equal those computed for each row.
func TestCachedColumns(t *testing.T) {
	const wide = 2*chunk + 77
	text := "sin(3*x)*exp(-y) + (cos(ix) + 1)^2 * y + max(tan(x), y)"
	both := field(t, open(t, config(wide, 5, "float64", configs.Problem{Initial: text})))
	for iy := 1; iy < 4; iy++ {
		for ix := 1; ix < wide-1; ix++ {
			x, y := float64(ix)/float64(wide-1), float64(iy)/4
			c := elementary.Cos(float64(ix)) + 1
			a := float64(elementary.Sin(float64(3*x)) * elementary.Exp(-y))
			want := a + float64(float64(c*c)*y) + max(elementary.Tan(x), y)
			if got := both[iy][ix]; got != want {
				t.Fatalf("row %d, column %d: %v, want %v", iy, ix, got, want)
			}
		}
	}
}

// A row of choices has the values of its points, whether bounds tell which branch they take or not.
func TestChoicesInRows(t *testing.T) {
	const nx = 2*chunk + 77
	for _, text := range []string{
		"hypot(x-0.5, y-0.5) < 0.2 ? 1 : -0.5", "x < 0.3 ? sqrt(x-0.1) : log(x-0.2)", "y < 0.5 ? sin(90*x) : 2",
		"sin(40*x) > 0.2 ? (x > 0.5 ? x : y) : mod(17*x, 1) < 0.5 ? 3 : atan2(y-0.5, x-0.5)", "ix == 700 ? 1 : 0",
		"abs(x-0.5) < 0.1 && y > 0.2 ? 0*(x-0.5) : floor(3*x)/7", "sqrt(x-0.5) > 0.1 ? 1 : 2",
	} {
		n, err := compile(text, solver.Mesh{NX: nx, NY: 7}, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, nx)
		for iy := range 7 {
			s := &span{row: iy}
			for ; s.col < nx; s.col += chunk {
				n.fill(s, got[s.col:min(nx, s.col+chunk)])
			}
			for ix, v := range got {
				if want := n.at(&span{}, iy, ix); math.Float64bits(v) != math.Float64bits(want) {
					t.Fatalf("%s: row %d, column %d: %v, want %v", text, iy, ix, v, want)
				}
			}
		}
	}
}

// Where bounds tell which branch of a choice is taken, the condition and the other branch are not evaluated. Where they
// do not, all are, after three bounds.
func TestEvaluationsOfChoices(t *testing.T) {
	mesh := solver.Mesh{NX: chunk, NY: chunk}
	branch, err := compile("x", mesh, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][4]int{ // bounds; columns of the condition and of both branches
		"x < 2": {1, 0, chunk, 0}, "y > 2": {0, 1, 0, chunk}, "x < 0.3": {13, 8, 160, 360},
		"hypot(x-1, y-0.5) < 0.2": {13, 8, 88, 432}, "sin(90*x)*sin(90*y) > 0": {3, chunk, chunk, chunk},
	} {
		cond, err := compile(text, mesh, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		var got [4]int
		counted := func(n node, what int) node {
			eval := n.eval
			n.eval = func(s *span, dst []float64) {
				got[what] += len(dst)
				eval(s, dst)
			}
			return n
		}
		limit := cond.limit
		cond.limit = func(b box) bounds {
			got[0]++
			return limit(b)
		}
		dst := make([]float64, chunk)
		choose(counted(cond, 1), counted(branch, 2), counted(branch, 3)).fill(&span{row: 200}, dst)
		if got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestRowArguments(t *testing.T) {
	p := open(t, config(4, 5, "float32", configs.Problem{}))
	for _, c := range []struct {
		row, bytes int
		want       string
	}{
		{-1, 16, "row -1 of 5 into 16 bytes, not 16"},
		{5, 16, "row 5 of 5 into 16 bytes, not 16"},
		{0, 15, "row 0 of 5 into 15 bytes, not 16"},
	} {
		if err := p.Row(c.row, make([]byte, c.bytes)); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

func BenchmarkRow(b *testing.B) {
	for name, p := range map[string]configs.Problem{
		"gtc2019":    {Preset: "gtc2019"},
		"one":        {Initial: "1"},
		"eigenmode":  {Initial: "sin(pi*x)*sin(pi*y)"},
		"polynomial": {Initial: "x*(1-x)*y"},
	} {
		b.Run(name, func(b *testing.B) {
			q := open(b, config(16384, 16384, "float32", p))
			buf := make([]byte, q.mesh.RowBytes())
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				if err := q.Row(5000, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
