package output

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/regular"
	"jacobi/solver"
)

// History writes norms as CSV: the header iteration,l2_norm, then one line for each iteration that has a norm, counted
// from 0. Norms have all digits (%.17g).
type History struct {
	*Growing
	next    int // length of pending at which to write it
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
	h := &History{Growing: NewSummed(f, name), next: historyChunk, cadence: c}
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
	err := h.flush()
	h.next = len(h.pending) + historyChunk
	if err != nil && (!IsFull(err) || len(h.pending) > maxPending) {
		return fmt.Errorf("history of sweep %d: %w", h.cadence.Sweep(h.norms-1), err)
	}
	return nil
}

// Finish is that of Growing.
func (h *History) Finish() (FileReport, error) {
	done, err := h.Growing.Finish()
	if err != nil {
		return FileReport{}, fmt.Errorf("write history: %w", err)
	}
	return done, nil
}

// ProbesHeader is the first line of the file of the probes. Each line after it begins with a number of sweeps.
const ProbesHeader = "iteration,probe,ix,iy,x,y,value\n"

// maxGrown bounds what a run reads of an earlier run's lines.
const maxGrown = 1 << 30

// Growing is a file that is written from its beginning to its end. What finds no room waits in memory.
type Growing struct {
	f       File
	name    string
	end     int64     // bytes written
	sum     hash.Hash // of them; nil if nobody asks for it
	pending []byte    // what is not written
}

// NewGrowing returns a file with end bytes written.
func NewGrowing(f File, end int64) *Growing { return &Growing{f: f, end: end} }

// NewSummed returns a file called name whose hash is wanted. Nothing is written yet.
func NewSummed(f File, name string) *Growing { return &Growing{f: f, name: name, sum: sha256.New()} }

// flush writes what is pending.
func (g *Growing) flush() error {
	n, err := g.f.WriteAt(g.pending, g.end)
	if g.sum != nil {
		g.sum.Write(g.pending[:n]) // never fails
	}
	g.end += int64(n)
	g.pending = append(g.pending[:0], g.pending[n:]...)
	return err
}

// Write implements io.Writer. With an error b waits for the next call, up to 64 MiB; beyond that it is lost.
func (g *Growing) Write(b []byte) (int, error) {
	if len(g.pending)+len(b) <= maxPending {
		g.pending = append(g.pending, b...)
	}
	if err := g.flush(); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Finish makes the file durable and closes it. If it fails because the disk is full, it can be called again.
func (g *Growing) Finish() (FileReport, error) {
	err := g.flush()
	if err == nil {
		err = g.f.Sync()
	}
	if err != nil {
		return FileReport{}, err
	}
	done := FileReport{Name: g.name, Bytes: g.end}
	if g.sum != nil {
		done.SHA256 = hex.EncodeToString(g.sum.Sum(nil))
	}
	return done, g.f.Close()
}

// Close closes a file that Finish has not completed.
func (g *Growing) Close() error { return g.f.Close() }

// GrowProbes implements Place.
func (h *Held) GrowProbes(before int) (_ File, _ int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("create %s: %w", configs.ProbesFile, err)
		}
	}()
	path := h.final(configs.ProbesFile)
	if err := checkTarget(path); err != nil {
		return nil, 0, err
	}
	f, err := h.Create(configs.ProbesFile, 0)
	if err != nil {
		return nil, 0, err
	}
	n, err := copyLines(io.NewOffsetWriter(f, 0), path, before)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = h.Put(configs.ProbesFile)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close(), h.Remove(configs.ProbesFile))
	}
	return f, n, nil
}

// copyLines writes the header and the whole lines of an earlier run's file from before the given number of sweeps.
func copyLines(w io.Writer, path string, before int) (n int64, err error) {
	n = int64(len(ProbesHeader))
	if _, err := io.WriteString(w, ProbesHeader); err != nil || before <= 0 {
		return n, err
	}
	f, err := regular.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	in, out := bufio.NewReader(io.LimitReader(f, maxGrown)), bufio.NewWriter(w)
	line, err := in.ReadSlice('\n')
	for ours := string(line) == ProbesHeader; ours && err == nil; {
		if line, err = in.ReadSlice('\n'); err != nil { // what is left is no whole line
			break
		}
		first, _, _ := bytes.Cut(line, []byte{','})
		at, malformed := strconv.Atoi(string(first))
		if malformed != nil || at >= before {
			break
		}
		m, _ := out.Write(line) // Flush has the error
		n += int64(m)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return 0, err
	}
	return n, out.Flush()
}
