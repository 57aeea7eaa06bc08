package reduce

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"

	"jacobi/solver"
)

// kind says what a frame is.
type kind uint8

const (
	contribution kind = 1 // from a node to the root
	total        kind = 2 // from the root to one node or to all
	pending      kind = 3 // names the ranks that a pass waits for; from a node to the root, or from the root to a node
)

// frame is a message between the leaders of nodes. It is encoded, little-endian, as magic u32, kind u8, flags u8, count
// u16, run u64, pass u64, rank u32, then count sums (solver.SumBytes each) or, in a pending frame, count ranks (u32
// each), then u32, the CRC-32C of all bytes before it.
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

func (f frame) encode() []byte {
	waiting := f.waiting[:min(len(f.waiting), maxWaiting)]
	b := make([]byte, 0, frameHead+len(f.c.Sums)*solver.SumBytes+4*len(waiting)+4)
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
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeFrame(b []byte) (frame, error) {
	if len(b) < frameHead+4 || binary.LittleEndian.Uint32(b) != frameMagic {
		return frame{}, errors.New("not a frame of a reduction")
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return frame{}, fmt.Errorf("checksum %08x, the frame says %08x", got, sum)
	}
	f := frame{
		kind: kind(b[4]),
		run:  binary.LittleEndian.Uint64(b[8:]),
		pass: binary.LittleEndian.Uint64(b[16:]),
		rank: int(binary.LittleEndian.Uint32(b[24:])),
	}
	count, rest := int(binary.LittleEndian.Uint16(b[6:])), body[frameHead:]
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
