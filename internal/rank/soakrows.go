package rank

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"jacobi/internal/device"
	"jacobi/internal/output"
	"jacobi/internal/soak"
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
func hashRows(ctx context.Context, rows output.Rows, l solver.Layout, threads int) (rowHashes, error) {
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
func (j *joined) hashers() int { return max(1, min(int(j.cores), runtime.GOMAXPROCS(0))) }

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

// Times between readings of a GPU, and between the words of rank 0 in a long step.
const (
	healthInterval  = time.Second
	workingInterval = 5 * time.Second
)

// soakWatch reads the health of a GPU while it sweeps and, on rank 0, tells how far a long step is.
type soakWatch struct {
	s          *soaking
	result     *soak.Rank // gets the readings; nil for none
	working    soak.Working
	read, told time.Time // last
}

func newSoakWatch(s *soaking, result *soak.Rank, working soak.Working) *soakWatch {
	return &soakWatch{s: s, result: result, working: working, told: time.Now()}
}

// see is called before each pass. The first reading comes before the second pass, when the device is at work.
func (w *soakWatch) see(sweeps int) {
	now := time.Now()
	if sweeps > 0 && w.result != nil && w.s.readings != nil && now.Sub(w.read) >= healthInterval {
		w.read = now
		w.result.Health = w.s.health(w.result.Health)
	}
	if w.s.id.Rank == 0 && now.Sub(w.told) >= workingInterval {
		w.told = now
		w.working.Sweeps = sweeps
		w.s.tell(soak.Event{Event: "working", Working: &w.working})
	}
}

// health adds a reading. One that fails leaves h as it is: the GPU itself fails soon if it is lost.
func (s *soaking) health(h *soak.Health) *soak.Health {
	var r device.Health
	var err error
	if r, err = s.readings.Health(s.device.UUID); err != nil {
		return h
	}
	return h.With(r)
}
