package output

import (
	"bufio"
	"fmt"
	"strconv"
)

// History writes the norm of every sweep: the line iteration,l2_norm and then one line a sweep, counted
// from 0, with all digits (%.17g).
type History struct {
	p      Partial
	buf    *bufio.Writer
	line   []byte
	sweeps int
}

// CreateHistory begins the file name, which appears with Commit.
func CreateHistory(at Place, name, runID string) (*History, error) {
	p, err := at.Create(name, runID, 0)
	if err != nil {
		return nil, fmt.Errorf("create history: %w", err)
	}
	h := &History{p: p, buf: bufio.NewWriterSize(p, 1<<16)}
	if _, err := h.buf.WriteString("iteration,l2_norm\n"); err != nil {
		p.Abort()
		return nil, fmt.Errorf("create history: %w", err)
	}
	return h, nil
}

// Add appends the norms of the next sweeps. They must be final: nothing is taken back.
func (h *History) Add(norms ...float64) error {
	for _, norm := range norms {
		h.line = strconv.AppendInt(h.line[:0], int64(h.sweeps), 10)
		h.line = append(h.line, ',')
		h.line = strconv.AppendFloat(h.line, norm, 'g', 17, 64)
		h.line = append(h.line, '\n')
		if _, err := h.buf.Write(h.line); err != nil {
			return fmt.Errorf("history of sweep %d: %w", h.sweeps, err)
		}
		h.sweeps++
	}
	return nil
}

// Sweeps returns how many norms the history has.
func (h *History) Sweeps() int { return h.sweeps }

// Commit puts the file in its place, complete.
func (h *History) Commit() error {
	if err := h.buf.Flush(); err != nil {
		h.p.Abort()
		return fmt.Errorf("write history: %w", err)
	}
	if err := h.p.Commit(); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// Abort removes what was written; after Commit it does nothing.
func (h *History) Abort() error { return h.p.Abort() }
