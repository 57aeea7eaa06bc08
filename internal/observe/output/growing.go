package output

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/regular"
)

// ProbesHeader is the first line of the file of the probes. Each line after it begins with a number of sweeps.
const ProbesHeader = "iteration,probe,ix,iy,x,y,value\n"

// maxGrown bounds what a run reads of an earlier run's lines.
const maxGrown = 1 << 30

// Growing is a file of lines that has its final name while it grows.
type Growing struct {
	f       File
	end     int64  // bytes written
	pending []byte // lines that are not written
}

// NewGrowing returns a file with end bytes written.
func NewGrowing(f File, end int64) *Growing { return &Growing{f: f, end: end} }

// Add appends lines. With an error they wait in memory for the next call, up to 64 MiB; beyond that they are lost.
func (g *Growing) Add(lines []byte) error {
	if len(g.pending)+len(lines) <= maxPending {
		g.pending = append(g.pending, lines...)
	}
	if _, err := g.f.WriteAt(g.pending, g.end); err != nil {
		return err
	}
	g.end += int64(len(g.pending))
	g.pending = g.pending[:0]
	return nil
}

// Close makes the lines durable and closes the file.
func (g *Growing) Close() error {
	err := g.Add(nil)
	if err == nil {
		err = g.f.Sync()
	}
	return errors.Join(err, g.f.Close())
}

// GrowProbes implements Place.
func (h *Held) GrowProbes(before int) (File, int64, error) {
	f, end, err := h.growProbes(before)
	if err != nil {
		return nil, 0, fmt.Errorf("create %s: %w", configs.ProbesFile, err)
	}
	return f, end, nil
}

func (h *Held) growProbes(before int) (File, int64, error) {
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
