package output

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// RowHashes are the SHA-256s of a rank's rows of a field, as little-endian values of the field's type. A hash of the
// field by rows needs no order of ranks, threads or time, unlike that of its bytes.
type RowHashes struct {
	size  int    // bytes of a row
	table []byte // of each row its number, u32, and its SHA-256
}

const rowHashBytes = 4 + sha256.Size

// NewRowHashes returns those of a field with this mesh, so far without rows.
func NewRowHashes(m solver.Mesh) *RowHashes { return &RowHashes{size: m.RowBytes()} }

// Add is a Use. It hashes rows on all cores.
func (h *RowHashes) Add(lo int, rows []byte) error {
	n, at := len(rows)/h.size, len(h.table)
	h.table = append(h.table, make([]byte, n*rowHashBytes)...)
	return parallel.Each(n, func(i int) error {
		sum := sha256.Sum256(rows[i*h.size:][:h.size])
		entry := h.table[at+i*rowHashBytes:]
		binary.LittleEndian.PutUint32(entry, uint32(lo+i))
		copy(entry[4:], sum[:])
		return nil
	})
}

// Parts returns the rank's parts of the hash, for FieldHash: as many as every rank of a mesh of ny rows has, each of at
// most size bytes. The last ones may be empty.
func (h *RowHashes) Parts(ny, size int) [][]byte {
	size -= size % rowHashBytes
	parts := make([][]byte, (ny*rowHashBytes+size-1)/size)
	for i := range parts {
		parts[i] = h.table[min(i*size, len(h.table)):min((i+1)*size, len(h.table))]
	}
	return parts
}

// FieldHash returns the hash of a field of ny rows, 64 hexadecimal digits: the SHA-256 of the SHA-256s of its rows from
// 0 to ny-1. The parts of all ranks must have each of the rows once.
func FieldHash(ny int, parts ...[]byte) (string, error) {
	all, have := make([]byte, ny*sha256.Size), 0
	known := make([]bool, ny)
	for _, part := range parts {
		for ; len(part) >= rowHashBytes; part = part[rowHashBytes:] {
			row := int(binary.LittleEndian.Uint32(part))
			if row >= ny || known[row] {
				return "", fmt.Errorf("hash of the field: row %d of %d has come twice, or is none", row, ny)
			}
			known[row] = true
			have += copy(all[row*sha256.Size:], part[4:rowHashBytes])
		}
	}
	if have != len(all) {
		return "", fmt.Errorf("hash of the field: %d of %d rows have come", have/sha256.Size, ny)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:]), nil
}
