package solver

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactUnits returns floor(v / 2^(2e-134)).
func exactUnits(v float64, e Magnitude) *big.Int {
	f := new(big.Float).SetPrec(2000).SetFloat64(v)
	f.SetMantExp(f, UnitBits-2*int(e))
	i, _ := f.Int(nil)
	return i
}

func limbsOf(s Sum) *big.Int {
	i := new(big.Int)
	for k := 2; k >= 0; k-- {
		i.Lsh(i, 64).Or(i, new(big.Int).SetUint64(s.Limbs[k]))
	}
	return i
}

// A sum is exact for any magnitude, in any order and in any parts.
func TestSumIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, e := range []Magnitude{0, 1, -1, 30, -40, 450, -390} {
		var parts [3]Sum
		want := new(big.Int)
		for range 5000 {
			v := math.Ldexp(rng.Float64(), 2*int(e)+7-rng.IntN(160))
			parts[rng.IntN(3)].Add(v, e)
			want.Add(want, exactUnits(v, e))
		}
		var s Sum
		for _, i := range rng.Perm(3) {
			s.Merge(parts[i])
		}
		if s.Bad || limbsOf(s).Cmp(want) != 0 {
			t.Errorf("magnitude %d: sum %v (bad %v), want %v", e, limbsOf(s), s.Bad, want)
		}
	}
}

func TestSumRefusesWhatNoSweepCanMake(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, math.Ldexp(1, 9)} {
		var s Sum
		s.Add(v, 0)
		if !s.Bad || !math.IsNaN(s.Norm(0)) {
			t.Errorf("Add(%v): bad %v, norm %v; want bad and NaN", v, s.Bad, s.Norm(0))
		}
		var total Sum
		total.Add(1, 0)
		total.Merge(s)
		if !total.Bad {
			t.Errorf("Add(%v): lost by Merge", v)
		}
	}
	var s Sum
	s.Add(math.Ldexp(1, 7), 0) // the largest term: 32 points, |new-old| = 2
	s.Add(math.Copysign(0, -1), 0)
	s.Add(5e-324, 0)
	if s.Bad || s.Norm(0) != math.Sqrt(128) {
		t.Errorf("norm %v, bad %v; want %v", s.Norm(0), s.Bad, math.Sqrt(128))
	}
}

func TestSumOverflowIsBad(t *testing.T) {
	s := Sum{Limbs: [3]uint64{math.MaxUint64, math.MaxUint64, math.MaxUint64}}
	s.AddScaled(1, 0)
	if !s.Bad {
		t.Error("overflow went unnoticed")
	}
}

func TestSumOnTheWire(t *testing.T) {
	for _, s := range []Sum{{}, {Limbs: [3]uint64{1, 2 << 40, 3 << 50}}, {Limbs: [3]uint64{5}, Bad: true}} {
		b := s.AppendBinary(nil)
		if len(b) != SumBytes {
			t.Fatalf("%d bytes, want %d", len(b), SumBytes)
		}
		if got, err := SumFromBinary(b); err != nil || got != s {
			t.Errorf("%v came back as %v, %v", s, got, err)
		}
	}
	for _, b := range [][]byte{nil, make([]byte, SumBytes-1), append(make([]byte, 24), 2)} {
		if s, err := SumFromBinary(b); err == nil {
			t.Errorf("%d bytes accepted as %v", len(b), s)
		}
	}
}

func TestMagnitudeOf(t *testing.T) {
	for v, want := range map[float64]Magnitude{0: 0, 1: 0, 0.75: 0, 0.5: -1, 1.0000001: 1, 2: 1, 3: 2, 1e-12: -39,
		1e18: 60} {
		if got := MagnitudeOf(v); got != want {
			t.Errorf("MagnitudeOf(%v) = %d, want %d", v, got, want)
		}
		if v > 0 && (math.Ldexp(1, int(want)) < v || math.Ldexp(1, int(want)-1) >= v) {
			t.Errorf("2^%d is not the smallest power of two above %v", want, v)
		}
	}
}

// An integer is rounded once when it becomes a float64, also where the result is denormal.
func TestIntegerRoundsOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		var s Sum
		for i := range 1 + random.IntN(3) {
			s.Limbs[i] = random.Uint64() >> random.IntN(65)
			if random.IntN(4) == 0 { // half-way between two numbers, or nearly
				s.Limbs[i] = random.Uint64()&^(1<<random.IntN(64)-1) | uint64(random.IntN(2))
			}
		}
		exp := []int{-UnitBits, 0, -1074 - random.IntN(200)}[random.IntN(3)]
		f := new(big.Float).SetInt(limbsOf(s))
		want, _ := f.SetMantExp(f, exp).Float64()
		x, minus := make(Integer, 4), make(Integer, 4)
		for i, limb := range s.Limbs {
			x.AddScaled(limb, 64*i)
			minus.SubScaled(limb, 64*i)
		}
		if got, negated := x.Float(exp), minus.Float(exp); got != want || negated != -want {
			t.Fatalf("%x * 2^%d = %b, negated %b; want %b", s.Limbs, exp, got, negated, want)
		}
	}
}
