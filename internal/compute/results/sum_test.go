package results

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// A Sum is exact, so it does not depend on the order of its terms.
func TestSumIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	terms := []float64{math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 1e300, -1e300, 1, -0x1p-1070, 0}
	for range 2000 {
		terms = append(terms, r.NormFloat64()*math.Ldexp(1, r.IntN(1800)-1000))
	}
	exact := new(big.Float).SetPrec(4000)
	for _, v := range terms {
		exact.Add(exact, big.NewFloat(v))
	}
	want, _ := exact.Float64()
	for range 5 {
		r.Shuffle(len(terms), func(i, j int) { terms[i], terms[j] = terms[j], terms[i] })
		var a, b Sum
		for i, v := range terms {
			if i%3 == 0 {
				a.Add(v)
			} else {
				b.Add(v)
			}
		}
		text, err := b.MarshalText()
		var back Sum
		if err != nil || back.UnmarshalText(text) != nil {
			t.Fatal(err)
		}
		a.Merge(&back)
		if got := a.Value(); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	var s Sum
	s.Add(-2.5)
	s.Add(1)
	if got := s.Value(); got != -1.5 {
		t.Errorf("%v, want -1.5", got)
	}
	s.Add(math.Inf(1))
	text, _ := s.MarshalText()
	var back Sum
	if err := back.UnmarshalText(text); err != nil || !math.IsNaN(back.Value()) {
		t.Errorf("%q: %v, %v", text, back.Value(), err)
	}
	for _, text := range []string{"", "-", "a b", strings.Repeat("Z", 600), strings.Repeat("Z", 450)} {
		if back.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is no sum", text)
		}
	}
}
