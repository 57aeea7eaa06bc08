package problem

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// randomExpression returns an expression of a depth, and whether it is a condition.
func randomExpression(r *rand.Rand, depth int, condition bool) string {
	number := func() string { return randomExpression(r, depth-1, false) }
	truth := func() string { return randomExpression(r, depth-1, true) }
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	if condition {
		switch {
		case depth <= 0 || r.IntN(3) > 0:
			return fmt.Sprintf("(%s %s %s)", number(), pick("<", "<=", ">", ">=", "==", "!="), number())
		case r.IntN(3) == 0:
			return "(not " + truth() + ")"
		}
		return fmt.Sprintf("(%s %s %s)", truth(), pick("and", "or"), truth())
	}
	if depth <= 0 {
		return pick("x", "y", "0.5", "2", "(-1.5)", "0", "3", fmt.Sprintf("%.3f", r.Float64()))
	}
	switch r.IntN(8) {
	case 0, 1, 2:
		return fmt.Sprintf("(%s %s %s)", number(), pick("+", "-", "*", "/", "%", "^"), number())
	case 3, 4, 5:
		f := functions()[r.IntN(len(functions()))]
		if f.one != nil {
			return fmt.Sprintf("%s(%s)", f.name, number())
		}
		return fmt.Sprintf("%s(%s, %s)", f.name, number(), number())
	}
	return fmt.Sprintf("(%s ? %s : %s)", truth(), number(), number())
}

// The bounds of an expression in a box hold at all places in it, and where it is said not to jump, the same branches
// are taken everywhere.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	mesh := solver.Mesh{NX: 33, NY: 17, DType: solver.Float64}
	calm, cut := 0, 0
	for range 4000 {
		text := randomExpression(r, 1+r.IntN(4), r.IntN(3) == 0)
		n, err := compile("0*x < 1 ? "+text+" : "+text, mesh, 1, 0.5)
		if err != nil {
			continue // it is longer than an expression may be
		}
		b := box{left: 32 * r.Float64(), top: 16 * r.Float64()}
		b.right, b.bottom = b.left+math.Pow(r.Float64(), 4)*8, b.top+math.Pow(r.Float64(), 4)*8
		limit, jumps := n.limit(b), n.jumps(b)
		if jumps {
			cut++
		} else {
			calm++
		}
		var first uint64
		for i := range 40 {
			s := spot{x: b.left + r.Float64()*(b.right-b.left), y: b.top + r.Float64()*(b.bottom-b.top)}
			if i < 4 {
				s.x, s.y = [2]float64{b.left, b.right}[i&1], [2]float64{b.top, b.bottom}[i>>1]
			}
			v := n.spot(&s)
			if !(v >= limit.lo && v <= limit.hi) && !(v != v && limit.nan) {
				t.Fatalf("%s: %v in %+v, bounds %+v", text, v, b, limit)
			}
			if i == 0 {
				first = s.branches
			}
			if !jumps && !n.isBool && s.branches != first {
				t.Fatalf("%s: jumps in %+v, which is denied", text, b)
			}
		}
	}
	if calm < 500 || cut < 500 {
		t.Errorf("%d boxes without a jump, and %d with one", calm, cut)
	}
}

// An expression has the same value at a point whether a row of points is worked out or a place of the plane, also
// beyond a periodic end.
func TestSpots(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, walls := range []solver.Walls{{}, {Left: solver.Periodic, Right: solver.Periodic, Top: solver.Periodic,
		Bottom: solver.Periodic}} {
		mesh := solver.Mesh{NX: 13, NY: 9, DType: solver.Float64, Walls: walls}
		for range 300 {
			text := randomExpression(r, 3, false) + " + ix - 2*iy"
			n, err := compile(text, mesh, 1, 0.5)
			if err != nil {
				t.Fatal(err)
			}
			for iy := 1; iy < mesh.NY-1; iy++ {
				for ix := 1; ix < mesh.NX-1; ix++ {
					want := n.at(&span{}, iy, ix)
					got := n.spot(&spot{x: float64(ix), y: float64(iy)})
					if got != want && got == got {
						t.Fatalf("%s: %v at a place, %v at the point", text, got, want)
					}
				}
			}
			if mesh.PeriodicColumns() {
				inside, beyond := n.spot(&spot{x: 1.25, y: 3}), n.spot(&spot{x: 12.25, y: 3})
				if inside != beyond && inside == inside {
					t.Fatalf("%s: %v beyond the end, %v within", text, beyond, inside)
				}
			}
		}
	}
}

func TestAreasAreWhereXAndYAre(t *testing.T) {
	for text, covers := range map[string]bool{"x < 0.5": true, "ix < 4": false, "x < 0.1*nx": false,
		"hypot(x, y) < 0.5": true, "iy == 2 or y > 0.5": false} {
		p := open(t, config(9, 9, "float64", configs.Problem{Fixed: text}))
		if p.fixed.covers() != covers || p.Areas() != covers || p.Weighted() != covers {
			t.Errorf("%s: covers %v, areas %v, weighted %v, want %v", text, p.fixed.covers(), p.Areas(), p.Weighted(),
				covers)
		}
	}
}
