package output

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"strconv"
)

// History writes the norm of every sweep: the line iteration,l2_norm and then one line a sweep, counted
// from 0, with all digits (%.17g).
type History struct {
	p       Partial
	name    string
	sum     hash.Hash
	bytes   int64  // written
	pending []byte // lines that are not written yet
	next    int    // length of pending at which it is written
	sweeps  int
}

const (
	historyHeader = "iteration,l2_norm\n"
	// A sweep's line is at most its number, a comma, 23 characters of %.17g and the end of the line.
	normBytes = 1 + 23 + 1
	// The lines are written historyChunk bytes at a time. A disk that is full may have room again later, or at the end,
	// when the field gives way: until then, mostPending bytes wait in memory.
	historyChunk = 64 << 10
	mostPending  = 64 << 20
)

// CreateHistory begins the file name, for which it reserves so many bytes.
func CreateHistory(at Place, name, runID string, room int64) (*History, error) {
	p, err := at.Create(name, runID, room)
	if err != nil {
		return nil, fmt.Errorf("create history: %w", err)
	}
	return &History{p: p, name: name, sum: sha256.New(), pending: []byte(historyHeader), next: historyChunk}, nil
}

// Add appends the norms of the next sweeps. They must be final: nothing is taken back.
func (h *History) Add(norms ...float64) error {
	for _, norm := range norms {
		h.pending = strconv.AppendInt(h.pending, int64(h.sweeps), 10)
		h.pending = append(h.pending, ',')
		h.pending = strconv.AppendFloat(h.pending, norm, 'g', 17, 64)
		h.pending = append(h.pending, '\n')
		h.sweeps++
	}
	if len(h.pending) < h.next {
		return nil
	}
	if err := h.flush(); err != nil && (!IsFull(err) || len(h.pending) > mostPending) {
		return fmt.Errorf("history of sweep %d: %w", h.sweeps-1, err)
	}
	return nil
}

func (h *History) flush() error {
	n, err := h.p.Write(h.pending)
	h.sum.Write(h.pending[:n]) // never fails
	h.bytes += int64(n)
	h.pending = append(h.pending[:0], h.pending[n:]...)
	h.next = len(h.pending) + historyChunk
	return err
}

// Sweeps returns how many norms the history has.
func (h *History) Sweeps() int { return h.sweeps }

// File returns the name of the partial file.
func (h *History) File() string { return h.p.File() }

// Finish makes the file durable. When it fails because the disk is full, it can be called again.
func (h *History) Finish() (FileReport, error) {
	err := h.flush()
	if err == nil {
		err = h.p.Sync()
	}
	if err == nil {
		err = h.p.Close()
	}
	if err != nil {
		return FileReport{}, fmt.Errorf("write history: %w", err)
	}
	return FileReport{Name: h.name, Bytes: h.bytes, SHA256: sumOf(h.sum)}, nil
}

// Abort removes what was written; after Finish it does nothing.
func (h *History) Abort() error { return h.p.Abort() }
