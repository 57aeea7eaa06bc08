package tasks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"jacobi/internal/tools/soak"
	"jacobi/solver"
)

// rowHashes are the SHA-256s of the rows of a stripe.
type rowHashes struct {
	stripe solver.Stripe
	hashes [][sha256.Size]byte // of row stripe.Lo+i
}

// hashBytes bounds the buffer in which rows are copied from a device to be hashed.
const hashBytes = 32 << 20

// hashRows hashes the rows of the layout's stripe with the given number of threads.
func hashRows(ctx context.Context, rows solver.Rows, l solver.Layout, threads int) (rowHashes, error) {
	h := rowHashes{l.Stripe, make([][sha256.Size]byte, l.Stripe.Rows())}
	size := l.Mesh.RowBytes()
	height := min(max(1, hashBytes/size), l.Stripe.Rows())
	buf := make([]byte, height*size)
	for lo := l.Stripe.Lo; lo < l.Stripe.Hi; lo += height {
		part := solver.Stripe{Lo: lo, Hi: min(lo+height, l.Stripe.Hi)}
		if err := rows.CopyRows(ctx, part, buf[:part.Rows()*size]); err != nil {
			return h, fmt.Errorf("copy rows %v: %w", part, err)
		}
		var wg sync.WaitGroup
		for t := range threads {
			wg.Go(func() {
				for i := t; i < part.Rows(); i += threads {
					h.hashes[lo-l.Stripe.Lo+i] = sha256.Sum256(buf[i*size : (i+1)*size])
				}
			})
		}
		wg.Wait()
	}
	return h, nil
}

// hashers returns with how many threads this rank hashes: its share of the cores.
func (s *soaking) hashers() int { return max(1, min(int(s.Cores), runtime.GOMAXPROCS(0))) }

// table returns the hashes of all rows, one after the other.
func (h rowHashes) table() []byte {
	var table []byte
	for i := range h.hashes {
		table = append(table, h.hashes[i][:]...)
	}
	return table
}

// tableOf is the reverse of table.
func tableOf(stripe solver.Stripe, table []byte) (rowHashes, error) {
	if len(table) != stripe.Rows()*sha256.Size {
		return rowHashes{}, fmt.Errorf("reference: %d bytes for %d rows", len(table), stripe.Rows())
	}
	h := rowHashes{stripe: stripe}
	for part := range slices.Chunk(table, sha256.Size) {
		h.hashes = append(h.hashes, [sha256.Size]byte(part))
	}
	return h, nil
}

// sum returns the SHA-256 of the table in hexadecimal digits.
func (h rowHashes) sum() string {
	sum := sha256.Sum256(h.table())
	return hex.EncodeToString(sum[:])
}

// differ returns the rows whose hashes are not those of the reference, which has all rows of h.
func (h rowHashes) differ(reference rowHashes) (differ []soak.Range) {
	for i := range h.hashes {
		row := h.stripe.Lo + i
		if !bytes.Equal(h.hashes[i][:], reference.hashes[row-reference.stripe.Lo][:]) {
			differ = soak.Collect(differ, row)
		}
	}
	return differ
}

// flipped is a field with one wrong bit, in the middle of a row.
type flipped struct {
	solver.RowSource
	row int
}

// Row implements solver.RowSource. The bit is the second of the exponent: it makes 0 a small number and 1 another one.
func (f flipped) Row(iy int, dst []byte) error {
	err := f.RowSource.Row(iy, dst)
	if iy == f.row {
		dst[(len(dst)/16)*8+7] ^= 1 << 5 // the highest byte of a value of 4 or 8 bytes
	}
	return err
}
