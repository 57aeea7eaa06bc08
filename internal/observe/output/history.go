package output

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"strconv"

	"jacobi/solver"
)

// History writes norms as CSV: the header iteration,l2_norm, then one line for each iteration that has a norm, counted
// from 0. Norms have all digits (%.17g).
type History struct {
	file    *Summed
	pending []byte // lines not yet written
	next    int    // length of pending at which to write it
	cadence solver.Cadence
	norms   int // added
}

const (
	historyHeader = "iteration,l2_norm\n"
	// A line is at most the number of the sweep plus normBytes: a comma, 23 characters of %.17g and a newline.
	normBytes = 1 + 23 + 1
	// Lines are written about historyChunk bytes at a time. A full disk may have room again later, at the latest when
	// the field is given up at the end of the run. Until then up to maxPending bytes wait in memory.
	historyChunk = 64 << 10
	maxPending   = 64 << 20
)

// CreateHistory creates the file for name and reserves room bytes for it. c says which iterations have a norm.
func CreateHistory(at Place, name string, room int64, c solver.Cadence) (*History, error) {
	f, err := at.Create(name, room)
	if err != nil {
		return nil, fmt.Errorf("create history: %w", err)
	}
	h := &History{file: NewSummed(f, name), next: historyChunk, cadence: c}
	h.pending = append(make([]byte, 0, historyChunk+1<<10), historyHeader...) // room for the norms of a pass more
	return h, nil
}

// Add appends the next norms. Norms must be final, because lines are not rewritten.
func (h *History) Add(norms ...float64) error {
	for _, norm := range norms {
		h.pending = strconv.AppendInt(h.pending, int64(h.cadence.Sweep(h.norms)), 10)
		h.pending = append(h.pending, ',')
		h.pending = strconv.AppendFloat(h.pending, norm, 'g', 17, 64)
		h.pending = append(h.pending, '\n')
		h.norms++
	}
	if len(h.pending) < h.next {
		return nil
	}
	if err := h.flush(); err != nil && (!IsFull(err) || len(h.pending) > maxPending) {
		return fmt.Errorf("history of sweep %d: %w", h.cadence.Sweep(h.norms-1), err)
	}
	return nil
}

func (h *History) flush() error {
	n, err := h.file.Write(h.pending)
	h.pending = append(h.pending[:0], h.pending[n:]...)
	h.next = len(h.pending) + historyChunk
	return err
}

// Finish writes the pending lines and makes the file durable. If it fails because the disk is full, it can be called
// again.
func (h *History) Finish() (done FileReport, err error) {
	if err = h.flush(); err == nil {
		done, err = h.file.Finish()
	}
	if err != nil {
		return FileReport{}, fmt.Errorf("write history: %w", err)
	}
	return done, nil
}

// Summed writes a file from its beginning to its end, and adds up its size and its hash.
type Summed struct {
	f    File
	done FileReport
	sum  hash.Hash
}

// NewSummed returns the writer of f, which is called name.
func NewSummed(f File, name string) *Summed {
	return &Summed{f: f, done: FileReport{Name: name}, sum: sha256.New()}
}

// Write implements io.Writer.
func (s *Summed) Write(b []byte) (int, error) {
	n, err := s.f.WriteAt(b, s.done.Bytes)
	s.sum.Write(b[:n]) // never fails
	s.done.Bytes += int64(n)
	return n, err
}

// Finish makes the file durable and closes it. If it fails because the disk is full, it can be called again.
func (s *Summed) Finish() (FileReport, error) {
	if err := s.f.Sync(); err != nil {
		return FileReport{}, err
	}
	s.done.SHA256 = sumOf(s.sum)
	return s.done, s.f.Close()
}
