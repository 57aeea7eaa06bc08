package reduce

import (
	"encoding/binary"
	"errors"
	"fmt"

	"jacobi/solver"
)

// A message between leaders begins with its kind, a byte. It holds, little-endian,
//
//	sums:     for each pass, pass u64, flags u8, count u16 and count sums (solver.SumBytes each)
//	missing:  pass u64, and the numbers of ranks that are missing from it, u32 each
const (
	sumsKind    = 1
	missingKind = 2

	sumsHead   = 11
	maxSums    = 4096
	maxMissing = 1024 // ranks named in a message
)

// passSum is the sum of a pass: of a subtree, or the total.
type passSum struct {
	pass uint64
	c    solver.Contribution
}

// appendSum appends the sum of a pass to a message, which may be nil.
func appendSum(message []byte, pass uint64, c solver.Contribution) []byte {
	if message == nil {
		message = make([]byte, 0, 1+sumsHead+len(c.Sums)*solver.SumBytes)
		message = append(message, sumsKind)
	}
	message = binary.LittleEndian.AppendUint64(message, pass)
	message = append(message, byte(c.Flags))
	message = binary.LittleEndian.AppendUint16(message, uint16(len(c.Sums)))
	for _, s := range c.Sums {
		message = s.AppendBinary(message)
	}
	return message
}

// parseSums reads a message of sums, at most most for a pass.
func parseSums(message []byte, most int) (sums []passSum, err error) {
	if len(message) < 1+sumsHead || message[0] != sumsKind {
		return nil, errors.New("not a message of sums")
	}
	for rest := message[1:]; len(rest) > 0; {
		if len(rest) < sumsHead {
			return nil, errors.New("a message of sums ends early")
		}
		pass, flags := binary.LittleEndian.Uint64(rest), solver.Flags(rest[8])
		count := int(binary.LittleEndian.Uint16(rest[9:]))
		rest = rest[sumsHead:]
		if count > most || len(rest) < count*solver.SumBytes || !flags.Valid() {
			return nil, fmt.Errorf("pass %d with %d sums, flags %#02x, in %d bytes; at most %d sums were announced",
				pass, count, byte(flags), len(rest), most)
		}
		c := solver.Contribution{Sums: make([]solver.Sum, count), Flags: flags}
		for i := range c.Sums {
			if c.Sums[i], err = solver.SumFromBinary(rest); err != nil {
				return nil, err
			}
			rest = rest[solver.SumBytes:]
		}
		sums = append(sums, passSum{pass, c})
	}
	return sums, nil
}

// missingMessage returns a message about the ranks that are missing from a pass.
func missingMessage(pass uint64, ranks []int) []byte {
	message := binary.LittleEndian.AppendUint64([]byte{missingKind}, pass)
	for _, r := range ranks[:min(len(ranks), maxMissing)] {
		message = binary.LittleEndian.AppendUint32(message, uint32(r))
	}
	return message
}

// parseMissing reads a message of missingMessage. It returns false for other messages.
func parseMissing(message []byte) (pass uint64, ranks []int, ok bool) {
	if len(message) < 9 || message[0] != missingKind || len(message)%4 != 1 {
		return 0, nil, false
	}
	for rest := message[9:]; len(rest) > 0; rest = rest[4:] {
		ranks = append(ranks, int(binary.LittleEndian.Uint32(rest)))
	}
	return binary.LittleEndian.Uint64(message[1:]), ranks, true
}
