package cuda

import (
	"context"
	"encoding/binary"
	"math"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// A lane of a kernel adds the sums of its groups to three float64 accumulators that hold multiples of three units 47 bits
// apart, rounding down; so it cuts each sum into three exact pieces and drops what lies below the lowest unit, which is the
// unit of solver.Sum. An accumulator begins at 2^52 units: there its unit is its last bit, and the difference of two bit
// patterns counts units. At the end of a share the counts are added, as integers, to words of the device's memory.
const (
	pieces    = 3
	pieceBits = 47
	sumWords  = 8 // for each sweep: low 31 bits and the rest of each piece's count, then the number of bad accumulators
	sumBytes  = 8 * sumWords
)

// biases returns what the accumulators begin with: 2^52 units each, the coarsest first.
func biases(e solver.Magnitude) (b [pieces]float64) {
	for i := range b {
		shift := pieceBits * (pieces - 1 - i)
		b[i] = math.Ldexp(1, 52+shift-solver.UnitBits+2*int(e))
	}
	return b
}

// decodeSum reads the words of one sweep.
func decodeSum(b []byte) solver.Sum {
	var s solver.Sum
	for i := range pieces {
		shift := pieceBits * (pieces - 1 - i)
		s.AddScaled(binary.LittleEndian.Uint64(b[16*i:]), shift)
		s.AddScaled(binary.LittleEndian.Uint64(b[16*i+8:]), shift+31)
	}
	s.Bad = s.Bad || binary.LittleEndian.Uint64(b[16*pieces:]) != 0
	return s
}

// slot returns where the sums of a block lie in the ring, in bytes.
func (b *Backend) slot(blk solver.Block) int {
	return int(blk.Index%ring) * b.maxSweeps() * sumBytes
}

// sendSums sends the sums of a block to the host, behind its sweeps, and clears their place for the block that is next to use it.
func (b *Backend) sendSums(blk solver.Block) error {
	at, n := b.slot(blk), blk.Sweeps*sumBytes
	if err := b.slow.CopyFromDevice(b.pinned, at, b.counts+driver.DevicePtr(at), n); err != nil {
		return err
	}
	if err := b.slow.Fill(b.counts+driver.DevicePtr(at), 0, n); err != nil {
		return err
	}
	return b.arrived[blk.Index%ring].Record(b.slow)
}

// freePlace makes a stream wait until the place of a block's sums is clear. It nearly always is: the host has waited for the sums that were there.
func (b *Backend) freePlace(s *driver.Stream, blk solver.Block) error {
	e := b.arrived[blk.Index%ring]
	if done, err := e.Done(); done || err != nil {
		return err
	}
	return s.Wait(e)
}

// Sums implements solver.Backend.
func (b *Backend) Sums(ctx context.Context, blk solver.Block) ([]solver.Sum, error) {
	if err := b.await(ctx, b.arrived[blk.Index%ring]); err != nil {
		return nil, err
	}
	at := b.slot(blk)
	b.sums = b.sums[:0]
	for i := range blk.Sweeps {
		b.sums = append(b.sums, decodeSum(b.pinned.Bytes()[at+i*sumBytes:]))
	}
	return b.sums, nil
}
