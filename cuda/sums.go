package cuda

import (
	"context"
	"encoding/binary"
	"math"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// A lane of a kernel adds the sums of its groups to three float64 limbs, which hold multiples of units 47 bits apart.
// Adding toward minus infinity splits each sum into three exact parts and drops the rest below the lowest unit, which
// is the unit of solver.Sum. A limb starts at 2^52 units, where its last bit is its unit, so the difference of two bit
// patterns counts units. At the end of a share the counts are added, as integers, to words in the device's memory
// (kernels/sum.cuh).
const (
	limbs    = 3
	limbBits = 47
	lowBits  = 31        // of a limb's count in the first of its two words
	badWord  = 2 * limbs // the word that counts limbs that overflowed
	sumWords = 8         // for each sweep
	sumBytes = 8 * sumWords
)

// biases returns the initial values of the limbs: 2^52 units each, the coarsest first.
func biases(e solver.Magnitude) (b [limbs]float64) {
	for i := range b {
		shift := limbBits * (limbs - 1 - i)
		b[i] = math.Ldexp(1, 52+shift-solver.UnitBits+2*int(e))
	}
	return b
}

// decodeSum returns the sum of one sweep: the difference of its words and their values before the pass.
func decodeSum(words, before []byte) solver.Sum {
	word := func(i int) uint64 {
		return binary.LittleEndian.Uint64(words[8*i:]) - binary.LittleEndian.Uint64(before[8*i:])
	}
	var s solver.Sum
	for i := range limbs {
		shift := limbBits * (limbs - 1 - i)
		s.AddScaled(word(2*i), shift)
		s.AddScaled(word(2*i+1), shift+lowBits)
	}
	s.Bad = s.Bad || word(badWord) != 0
	return s
}

// slot returns the offset in bytes of a pass's sums in the ring.
func (b *Backend) slot(sp solver.Pass) int {
	return int(sp.Index%ring) * b.dev.maxSweeps() * sumBytes
}

// takePlace saves the words of a pass's place in the ring. They are never cleared, so the pass's sums are the
// difference.
func (b *Backend) takePlace(ctx context.Context, sp solver.Pass) error {
	if err := b.dev.await(ctx, b.arrived[sp.Index%ring]); err != nil {
		return err
	}
	at, n := b.slot(sp), b.dev.maxSweeps()*sumBytes
	copy(b.before[at:at+n], b.pinned.Bytes()[at:at+n])
	return nil
}

// sendSums copies the words of a pass to the host after its sweeps, also of those without a norm: a kernel may have
// added to them.
func (b *Backend) sendSums(sp solver.Pass) error {
	at := b.slot(sp)
	m := b.dev.times.begin(b.dev.slow, solver.Work{Kind: solver.WorkSums, Number: sp.Index, First: sp.First,
		Sweeps: sp.Sweeps})
	if err := b.dev.slow.CopyFromDevice(b.pinned, at, b.counts+driver.DevicePtr(at), sp.Sweeps*sumBytes); err != nil {
		return err
	}
	m.end()
	return b.arrived[sp.Index%ring].Record(b.dev.slow)
}

// Sums implements solver.Backend.
func (b *Backend) Sums(ctx context.Context, sp solver.Pass) ([]solver.Sum, error) {
	if err := b.dev.await(ctx, b.arrived[sp.Index%ring]); err != nil {
		return nil, err
	}
	at := b.slot(sp)
	b.sums = b.sums[:0]
	for i := range sp.Sweeps {
		if !b.dev.layout.Norms.Has(sp.First + i) {
			continue
		}
		at := at + i*sumBytes
		b.sums = append(b.sums, decodeSum(b.pinned.Bytes()[at:], b.before[at:]))
	}
	return b.sums, nil
}
