package kernel

import (
	"math"
	"unsafe"
)

// FMA returns x*y+z rounded once.
func FMA[F float](x, y, z F) F {
	if unsafe.Sizeof(x) == 8 {
		return F(math.FMA(float64(x), float64(y), float64(z)))
	}
	// The product is exact: 24+24 bits. Rounding the sum to float64 and then to float32 is right, unless the first
	// rounding led to the middle between two float32 values, or the result is denormal.
	s := float64(float64(x)*float64(y)) + float64(z)
	if math.Float64bits(s)&(1<<29-1) != 1<<28 && math.Abs(s) >= smallest32 {
		return F(s)
	}
	return F(fma32(float32(x), float32(y), float32(z)))
}

// fma32 returns x*y+z rounded once to float32, for all values.
func fma32(x, y, z float32) float32 {
	p := float64(float64(x) * float64(y)) // exact: 24+24 bits
	s := p + float64(z)
	t := s - p
	err := (p - (s - t)) + (float64(z) - t) // s+err == p+z exactly
	// Rounding s to odd makes the second rounding, to float32, that of the exact sum.
	if bits := math.Float64bits(s); err != 0 && bits&1 == 0 {
		if (err > 0) == (s > 0) {
			s = math.Float64frombits(bits + 1)
		} else {
			s = math.Float64frombits(bits - 1)
		}
	}
	return float32(s)
}
