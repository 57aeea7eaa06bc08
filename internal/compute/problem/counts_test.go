package problem

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/compute/results"
	"jacobi/solver"
)

// TestCheckSamples counts the pieces of rows that the check before a run works out: of all rows where islands or values
// that are not allowed may hide, and else of samples.
func TestCheckSamples(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the count is the same in each run
	const ny = 1025
	for _, c := range []struct {
		name string
		set  func(*configs.Problem)
		all  bool
	}{
		{"a smooth coefficient", func(p *configs.Problem) { p.Coefficient = "1+x*y" }, false},
		{"and f and k2", func(p *configs.Problem) {
			p.Coefficient, p.Source, p.Screening = "1+x*y", "x-y", "y"
		}, false},
		{"a disc", func(p *configs.Problem) { p.Fixed = "hypot(x-0.5,y-0.5)<0.2" }, false},
		{"a hole", func(p *configs.Problem) { p.Coefficient = "hypot(x-0.5,y-0.5)<0.2?0:1" }, true},
		{"a coefficient whose bounds are not known to be allowed", func(p *configs.Problem) {
			p.Coefficient = "1+x-x*y"
		}, true},
		{"no side with values", func(p *configs.Problem) {
			p.Left, p.Right, p.Top, p.Bottom = "flux(1)", "flux(-1)", "neumann(0)", "neumann(0)"
			p.Coefficient = "1+x*y"
		}, true},
	} {
		cfg := configs.Default()
		cfg.Grid.NX, cfg.Grid.NY, cfg.Solver.Method = 33, ny, "multigrid"
		c.set(&cfg.Problem)
		p, err := New(t.Context(), cfg)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		pieces := 0
		p.OnWork(func() { pieces++ })
		if err := p.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if most := 12 * samples; (pieces > most) != c.all {
			t.Errorf("%s: %d pieces of %d rows were worked out", c.name, pieces, ny)
		}
	}
}

// TestFiguresShareRows counts the pieces of rows that the figures of a field work out: of each row the coefficient and
// the source once, for its part in the results and in the residual alike.
func TestFiguresShareRows(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the count is the same in each run
	const ny = 129
	cfg := configs.Default()
	cfg.Grid.NX, cfg.Grid.NY, cfg.Problem.Coefficient, cfg.Problem.Source = 33, ny, "1+x*y", "x"
	p, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	pieces := 0
	p.OnWork(func() { pieces++ })
	figuresOf(t, p, oneByOne)
	stripe := p.Mesh().Interior()
	if want := ny + stripe.Rows(); pieces != want {
		t.Errorf("%d pieces were worked out, want %d: %d rows of the coefficient and %d of the source", pieces, want,
			ny, stripe.Rows())
	}
}

// TestRowsOfARun counts the pieces of rows that a rank works out in its life: when it surveys its rows, when it loads
// them, and for the figures of the field. Each time it works out each row once.
func TestRowsOfARun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the count is the same in each run
	const ny = 129
	cfg := configs.Default()
	cfg.Grid.NX, cfg.Grid.NY = 33, ny
	cfg.Problem = configs.Problem{Coefficient: "1+x*y", Source: "x", Left: "y", Top: "0", Bottom: "1"}
	p, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	pieces := 0
	p.OnWork(func() { pieces++ })
	if _, _, err := p.MaxGuess(t.Context(), 0, ny); err != nil {
		t.Fatal(err)
	}
	s, err := p.Survey(t.Context(), 0, ny)
	if err != nil {
		t.Fatal(err)
	}
	p.SetMaxima(s.Maxima)
	for iy := range ny {
		for _, k := range []solver.Value{solver.Diagonal, solver.EastFace, solver.SouthFace, solver.Source} {
			size := 8
			if k == solver.Source {
				size = p.Mesh().DType.Size()
			}
			if err := p.ValueRow(iy, k, make([]byte, size*p.Mesh().NX)); err != nil {
				t.Fatal(err)
			}
		}
	}
	figuresOf(t, p, oneByOne)
	if want := 3 * (ny + p.Mesh().Interior().Rows()); pieces != want {
		t.Errorf("%d pieces were worked out, want %d: three times %d rows of the coefficient and %d of the source",
			pieces, want, ny, p.Mesh().Interior().Rows())
	}
}

// TestRowsOnAllCores has phases that work on all rows wait, at the first piece of a core, until all cores have one.
func TestRowsOnAllCores(t *testing.T) {
	const ny, cores = 257, 4
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	for name, phase := range map[string]func(p *Problem) error{
		"the largest values of the initial field": func(p *Problem) error {
			_, _, err := p.MaxGuess(t.Context(), 0, ny)
			return err
		},
		"the survey": func(p *Problem) error { _, err := p.Survey(t.Context(), 0, ny); return err },
		"the figures": func(p *Problem) error {
			figuresOf(t, p, func(u results.RowUser, _ int) results.RowUser { return u })
			return nil
		},
	} {
		cfg := configs.Default()
		cfg.Grid.NX, cfg.Grid.NY = 33, ny
		cfg.Problem = configs.Problem{Coefficient: "1+x*y", Source: "x", Initial: "y*y", Fixed: "x*y>0.9"}
		p, err := New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		var begun atomic.Int64
		all, late := make(chan struct{}), make(chan struct{})
		end := time.AfterFunc(20*time.Second, func() { close(late) })
		p.OnWork(func() {
			if begun.Add(1) == cores {
				close(all)
			}
			select {
			case <-all:
			case <-late:
			}
		})
		if err := phase(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !end.Stop() {
			t.Errorf("%s: not all of %d cores had a piece of a row at once", name, cores)
		}
	}
}

// TestEdgesOnce surveys a disc: after that all squares that its edge cuts are known. A full cache works out what is
// asked for.
func TestEdgesOnce(t *testing.T) {
	const n = 65
	cfg := configs.Default()
	cfg.Grid.NX, cfg.Grid.NY = n, n
	cfg.Problem = configs.Problem{Fixed: "hypot(x-0.5,y-0.5)<0.2", Source: "1+x", Top: "1"}
	p, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Survey(t.Context(), 0, n); err != nil {
		t.Fatal(err)
	}
	none, edges := func(lo, hi int) ([]edged, error) { return nil, fmt.Errorf("columns [%d, %d)", lo, hi) }, 0
	for iy := 1; iy < n-1; iy++ {
		list, err := p.density.cuts.of(iy, 1, 2, n, none)
		if err != nil {
			t.Errorf("row %d is worked out again: %v", iy, err)
		}
		edges += len(list)
	}
	if all := p.density.cuts.count.Load(); int64(edges) != all || edges == 0 {
		t.Errorf("%d squares in the rows of the mesh, %d in all", edges, all)
	}
	full := newEdgeCache[edged](n)
	full.count.Store(mostEdges - n + 1)
	if _, err := full.of(1, 5, 7, n, none); err == nil || err.Error() != "columns [5, 7)" {
		t.Errorf("a full cache worked out %v, want columns [5, 7)", err)
	}
}

// figuresOf works out the figures of a field of 0, with the residual beside them. with returns who gets the rows, of
// which the first is given.
func figuresOf(t *testing.T, p *Problem, with func(user results.RowUser, first int) results.RowUser) {
	t.Helper()
	stripe := p.Mesh().Interior()
	tally := results.New(p, stripe)
	tally.Beside(func(iy int, above [2][]float64, row []float64) error {
		if above[0] == nil {
			return nil
		}
		_, err := p.Residual(iy-1, above[0], above[1], row)
		return err
	})
	first := stripe.Lo
	if p.Mesh().Walls.Top == solver.Dirichlet {
		first-- // the row of the wall
	}
	rows := results.NewRows(p, stripe, with(tally, first))
	err := rows.AddRows(stripe.Lo, make([]byte, stripe.Rows()*p.Mesh().RowBytes()))
	if err := errors.Join(err, rows.End(nil)); err != nil {
		t.Fatal(err)
	}
}

// oneByOne has a user look at one batch after the other.
func oneByOne(user results.RowUser, first int) results.RowUser {
	return &inTurn{user: user, seen: sync.NewCond(&sync.Mutex{}), next: first}
}

// inTurn has a user look at one batch after the other: batches that overlap may work out the rows between them twice.
type inTurn struct {
	user results.RowUser
	seen *sync.Cond
	next int // row
}

// Look implements results.RowUser.
func (u *inTurn) Look(b results.Batch) (results.Steps, error) {
	u.seen.L.Lock()
	defer u.seen.L.Unlock()
	for u.next != b.IY {
		u.seen.Wait()
	}
	defer u.seen.Broadcast()
	u.next += len(b.Rows)
	return u.user.Look(b)
}

// TestFixedColumns compares fixed points with the values of their condition, and counts the columns for which a row of
// a disc evaluates it: those beside its edge.
func TestFixedColumns(t *testing.T) {
	const nx, ny = 1025, 9
	for _, c := range []struct {
		fixed string
		most  int // columns of a row that are evaluated
	}{{"hypot(x-0.5,y-0.5)<0.2", 2 * markColumns}, {"x<0.3 or x>0.9 and y<0.5", 2 * markColumns}, {"y>0.5", 0},
		{"sin(40*x)*y>0.3", nx}, {"ix%7==0", nx}} {
		cfg := configs.Default()
		cfg.Grid.NX, cfg.Grid.NY = nx, ny
		cfg.Problem = configs.Problem{Fixed: c.fixed, Top: "0", Bottom: "1"}
		p, err := New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		eval, columns, got := p.fixed.node.eval, 0, make([]bool, nx)
		n := p.fixed.node
		p.fixed.node.eval = func(s *span, dst []float64) {
			columns += len(dst)
			eval(s, dst)
		}
		for iy := range ny {
			columns = 0
			if err := p.GivenRow(iy, got); err != nil {
				t.Fatal(err)
			}
			if columns > c.most {
				t.Errorf("%s, row %d: %d columns were evaluated, want at most %d", c.fixed, iy, columns, c.most)
			}
			for ix, fixed := range got {
				if want := n.at(&span{}, iy, ix) != 0; fixed != want {
					t.Errorf("%s, row %d, column %d: fixed %v, want %v", c.fixed, iy, ix, fixed, want)
				}
			}
		}
	}
}

// TestSurveyCountsFixed compares the fixed points that a survey counts with those of CountFixed, over two stripes.
func TestSurveyCountsFixed(t *testing.T) {
	for _, c := range []struct{ fixed, coefficient, source string }{
		{"hypot(x-0.5,y-0.5)<0.2", "1", "0"}, {"abs(x-0.5)<0.1", "1", "1"}, {"x<0.3 and y>0.6", "x<0.5?0:1+y", "0"},
		{"false", "1+x", "0"},
	} {
		cfg := configs.Default()
		cfg.Grid.NX, cfg.Grid.NY = 33, 201
		cfg.Problem.Fixed, cfg.Problem.Coefficient, cfg.Problem.Source = c.fixed, c.coefficient, c.source
		p, err := New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range [][2]int{{1, 90}, {90, 200}} {
			s, err := p.Survey(t.Context(), rows[0], rows[1])
			if err != nil {
				t.Fatal(err)
			}
			want, err := p.CountFixed(t.Context(), rows[0], rows[1])
			if err != nil {
				t.Fatal(err)
			}
			if s.Fixed != want {
				t.Errorf("%+v, rows %v: %d fixed points, want %d", c, rows, s.Fixed, want)
			}
		}
	}
}
