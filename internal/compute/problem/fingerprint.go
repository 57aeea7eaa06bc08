package problem

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
)

// FunctionsHash returns the start of a SHA-256 over the values of all functions at fixed arguments. It is equal on
// machines that compute the same bits.
func FunctionsHash() string {
	h := sha256.New()
	args := arguments(64)
	for _, f := range functions() {
		for i, a := range args {
			if f.one != nil {
				hashFloat(h, f.one(a))
			} else {
				hashFloat(h, f.two(a, args[(7*i+3)%len(args)]))
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// arguments returns n numbers of both signs. Most absolute values lie between 2^-10 and 2^10, and a few are extreme.
// The numbers are made from integers (the sequence of SplitMix64), so they are the same on every machine.
func arguments(n int) []float64 {
	list := []float64{0, 1, -1, 0.5, 2, 3, 10, 1e22, -1e300, 1e-310}
	state := uint64(0)
	for len(list) < n {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		sign, exponent, fraction := z&(1<<63), 1013+z>>52%20, z&(1<<52-1)
		list = append(list, math.Float64frombits(sign|exponent<<52|fraction))
	}
	return list
}

// hashFloat adds v to h. All NaNs count as one: their bits differ between architectures, and the field never contains a
// NaN.
func hashFloat(h hash.Hash, v float64) {
	b := math.Float64bits(v)
	if math.IsNaN(v) {
		b = math.Float64bits(math.NaN())
	}
	h.Write(binary.LittleEndian.AppendUint64(nil, b))
}
