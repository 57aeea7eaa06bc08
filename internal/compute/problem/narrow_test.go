package problem

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"jacobi/solver"
)

// What an expression is in a box has the same values there, bit by bit, and a number jumps at the same places.
func TestNarrowedExpressionsKeepTheirValues(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	mesh := solver.Mesh{NX: 33, NY: 17, DType: solver.Float64}
	shorter := 0
	for range 4000 {
		text := randomExpression(r, 1+r.IntN(5), r.IntN(3) == 0)
		n, err := compile(text, mesh, 1, 0.5)
		if err != nil {
			continue // it is longer than an expression may be
		}
		b := box{left: 32 * r.Float64(), top: 16 * r.Float64()}
		b.right, b.bottom = b.left+math.Pow(r.Float64(), 4)*8, b.top+math.Pow(r.Float64(), 4)*8
		narrowed, limit := n.within(b)
		if limit != n.limit(b) || narrowed.isBool != n.isBool {
			t.Fatalf("%s: bounds %+v in %+v, want %+v", text, limit, b, n.limit(b))
		}
		var whole, part uint64 // the branches at the first place
		for i := range 40 {
			at := spot{x: b.left + r.Float64()*(b.right-b.left), y: b.top + r.Float64()*(b.bottom-b.top)}
			one, other := at, at
			want, got := n.spot(&one), narrowed.spot(&other)
			if math.Float64bits(got) != math.Float64bits(want) && !(got != got && want != want) {
				t.Fatalf("%s: %v at %+v, want %v", text, got, at, want)
			}
			if i == 0 {
				whole, part = one.branches, other.branches
			}
			if !n.isBool && (one.branches == whole) != (other.branches == part) {
				t.Fatalf("%s: other branches at %+v", text, at)
			}
			if one.branches != other.branches {
				shorter++
			}
		}
	}
	if shorter < 500 {
		t.Errorf("%d places have fewer branches to decide", shorter)
	}
}

// Of hundreds of areas only those count that reach into a box: edges of an expression of 4096 characters would take
// minutes otherwise.
func TestFewOfManyAreasAreLookedAt(t *testing.T) {
	mesh := solver.Mesh{NX: 101, NY: 101, DType: solver.Float64}
	var discs []string
	for i := range 140 {
		discs = append(discs, fmt.Sprintf("hypot(x-.%02d,y-.%02d)<.009", 3+i%14*7, 5+i/14*9))
	}
	looked := 0
	count := func(v float64) float64 {
		looked++
		return v
	}
	all := compared(constant(0))
	for i, text := range discs {
		disc, err := compile(text, mesh, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		counted := compared(apply1(count, func(b bounds) bounds { return b }, disc))
		if all = logical(math.Max, maxBounds, 0, all, counted); i == 0 {
			all = choose(counted, compared(constant(1)), all)
		}
	}
	for name, n := range map[string]node{"a condition": all, "a number": choose(all, constant(2), constant(1))} {
		jumps := 0
		square := func(lo, hi int) box { return box{float64(lo), float64(hi), 4.5, 5.5} }
		err := n.eachJump(0, 100, square, func(n node, i int) error {
			jumps, looked = jumps+1, 0
			n.spot(&spot{x: float64(i) + 0.5, y: 5})
			if looked > 2 {
				t.Errorf("%s: %d of %d areas are looked at in square %d", name, looked, len(discs), i)
			}
			return nil
		})
		if err != nil || jumps < 14 || jumps > 42 {
			t.Errorf("%s: %d squares with edges, %v", name, jumps, err)
		}
	}
}
