package reduce

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"slices"

	"jacobi/solver"
)

// kind says what a frame is.
type kind uint8

const (
	contribution kind = 1 // from a leader to its parent
	total        kind = 2 // from the root to all leaders, or from a parent to one
	pending      kind = 3 // names the ranks that a pass waits for; between a leader and its parent
)

// frame is a part of a message between the leaders of nodes; a message is one frame or more. It is encoded,
// little-endian, as magic u32, kind u8, flags u8, count u16, run u64, pass u64, rank u32, then count sums
// (solver.SumBytes each) or, in a pending frame, count ranks (u32 each), then u32, the CRC-32C of its bytes before
// that.
type frame struct {
	kind    kind
	run     uint64 // hash of the run id
	pass    uint64
	rank    int // of the sender
	c       solver.Contribution
	waiting []int
}

const (
	frameMagic = 0x5344524a // "JRDS"
	frameHead  = 28
	maxSums    = 4096
	maxWaiting = 1024 // ranks named in a pending frame
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// hashRun returns the number that stands for a run in its frames.
func hashRun(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return h.Sum64()
}

// appendTo appends the encoded frame to b.
func (f frame) appendTo(b []byte) []byte {
	waiting, start := f.waiting[:min(len(f.waiting), maxWaiting)], len(b)
	b = slices.Grow(b, frameHead+len(f.c.Sums)*solver.SumBytes+4*len(waiting)+4)
	b = binary.LittleEndian.AppendUint32(b, frameMagic)
	b = append(b, byte(f.kind), byte(f.c.Flags))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(f.c.Sums)+len(waiting)))
	b = binary.LittleEndian.AppendUint64(b, f.run)
	b = binary.LittleEndian.AppendUint64(b, f.pass)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.rank))
	for _, s := range f.c.Sums {
		b = s.AppendBinary(b)
	}
	for _, r := range waiting {
		b = binary.LittleEndian.AppendUint32(b, uint32(r))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// frameBytes returns the length of the frame at the beginning of b, or 0 if none begins there.
func frameBytes(b []byte) int {
	if len(b) < frameHead+4 || binary.LittleEndian.Uint32(b) != frameMagic {
		return 0
	}
	each := solver.SumBytes
	if kind(b[4]) == pending {
		each = 4
	}
	return frameHead + int(binary.LittleEndian.Uint16(b[6:]))*each + 4
}

// decodeFrame reads the frame at the beginning of b and returns its length. Where the length is not to be trusted, it
// returns that of b with the error.
func decodeFrame(b []byte) (frame, int, error) {
	n := frameBytes(b)
	if n == 0 || n > len(b) {
		return frame{}, len(b), errors.New("not a frame of a reduction")
	}
	body, sum := b[:n-4], binary.LittleEndian.Uint32(b[n-4:])
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return frame{}, len(b), fmt.Errorf("checksum %08x, the frame says %08x", got, sum)
	}
	f, err := decodeBody(body)
	return f, n, err
}

// decodeBody reads a frame without its checksum.
func decodeBody(b []byte) (frame, error) {
	f := frame{
		kind: kind(b[4]),
		run:  binary.LittleEndian.Uint64(b[8:]),
		pass: binary.LittleEndian.Uint64(b[16:]),
		rank: int(binary.LittleEndian.Uint32(b[24:])),
	}
	count, rest := int(binary.LittleEndian.Uint16(b[6:])), b[frameHead:]
	switch {
	case !solver.Flags(b[5]).Valid():
		return frame{}, fmt.Errorf("flags %#02x", b[5])
	case (f.kind == contribution || f.kind == total) && count <= maxSums && len(rest) == count*solver.SumBytes:
		f.c.Flags = solver.Flags(b[5])
		f.c.Sums = make([]solver.Sum, count)
		for i := range f.c.Sums {
			s, err := solver.SumFromBinary(rest[i*solver.SumBytes:])
			if err != nil {
				return frame{}, err
			}
			f.c.Sums[i] = s
		}
	case f.kind == pending && b[5] == 0 && count <= maxWaiting && len(rest) == 4*count:
		f.waiting = make([]int, count)
		for i := range f.waiting {
			f.waiting[i] = int(binary.LittleEndian.Uint32(rest[4*i:]))
		}
	default:
		return frame{}, fmt.Errorf("kind %d with a count of %d in %d bytes", f.kind, count, len(rest))
	}
	return f, nil
}
