package problem

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"

	"jacobi/solver"
)

// FunctionsHash returns the start of a SHA-256 over the values of all functions at fixed arguments. It is equal on
// machines that compute the same bits.
func FunctionsHash() string {
	h := sha256.New()
	args := arguments(64)
	for _, name := range functions() {
		one, ok := unaryFunction(name)
		two, _, _ := binaryFunction(name)
		for i, a := range args {
			if ok {
				hashFloat(h, one(a))
			} else {
				hashFloat(h, two(a, args[(7*i+3)%len(args)]))
			}
		}
	}
	return shortHash(h)
}

// RowsHash returns the start of a SHA-256 over four rows of the initial field, the source and the fixed points: the
// first two, the middle one and the last. If it differs between ranks with the same run file, they read different files
// or compute different values.
func (p *Problem) RowsHash(ctx context.Context) (string, error) {
	h := sha256.New()
	row := make([]byte, p.mesh.RowBytes())
	for _, iy := range []int{0, 1, p.mesh.NY / 2, p.mesh.NY - 1} {
		if ctx.Err() != nil {
			return "", fmt.Errorf("hash of row %d: %w", iy, context.Cause(ctx))
		}
		if err := p.Row(iy, row); err != nil {
			return "", err
		}
		h.Write(row)
		for k := range p.Operator().ValuesPerPoint() {
			if err := p.ValueRow(iy, solver.Value(k), row); err != nil {
				return "", err
			}
			h.Write(row)
		}
		if !p.stays() {
			continue
		}
		fixed := make([]bool, p.mesh.NX)
		if err := p.FixedRow(iy, fixed); err != nil {
			return "", err
		}
		if err := binary.Write(h, binary.LittleEndian, fixed); err != nil {
			return "", err
		}
	}
	return shortHash(h), nil
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

func shortHash(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:8]) }
