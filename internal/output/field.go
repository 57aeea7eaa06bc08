package output

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"jacobi/internal/regular"
	"jacobi/solver"
)

// Field is the .npy file of the whole mesh while the ranks write it. One rank creates it and sends the Ticket
// to the others; every rank opens it with that, writes its rows at their places and closes; once all have, the
// creator finishes it, and the place commits it.
type Field struct {
	p      Partial
	ticket Ticket
}

// Ticket leads every rank to the same partial file.
type Ticket struct {
	File string      `json:"file"` // name in output.dir; random in part, so that no other file can have it
	Size int64       `json:"size"` // bytes, header included
	Host string      `json:"host"` // of the creator, for messages
	Mesh solver.Mesh `json:"mesh"`
}

// CreateField creates the file name of mesh m in partial form, with its header written and room for all rows
// reserved: a disk too full gives ErrNoSpace now and not after the sweeps.
func CreateField(at Place, name, runID string, m solver.Mesh) (*Field, error) {
	f, err := createField(at, name, runID, m)
	if err != nil {
		return nil, fmt.Errorf("create field file: %w", err)
	}
	return f, nil
}

func createField(at Place, name, runID string, m solver.Mesh) (*Field, error) {
	header := npyHeader(m)
	size, err := fieldBytes(m, len(header))
	if err != nil {
		return nil, err
	}
	p, err := at.Create(name, runID, size)
	if err != nil {
		return nil, err
	}
	_, err = p.WriteAt(header, 0)
	if err == nil {
		_, err = p.WriteAt([]byte{0}, size-1) // so that all ranks see its size
	}
	if err == nil {
		err = p.Sync() // a network file system shows it to other nodes from here on
	}
	if err != nil {
		p.Abort()
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return &Field{p, Ticket{p.File(), size, host, m}}, nil
}

// FieldBytes returns the size of the .npy file of a mesh.
func FieldBytes(m solver.Mesh) (int64, error) { return fieldBytes(m, len(npyHeader(m))) }

func fieldBytes(m solver.Mesh, header int) (int64, error) {
	row := int64(m.NX) * int64(m.DType.Size())
	if int64(m.NY) > (math.MaxInt64-int64(header))/row {
		return 0, fmt.Errorf("a mesh of %d x %d is too large for a file", m.NX, m.NY)
	}
	return int64(header) + int64(m.NY)*row, nil
}

// Ticket returns what OpenField needs, on this rank and on the others.
func (f *Field) Ticket() Ticket { return f.ticket }

// File returns the name of the partial file.
func (f *Field) File() string { return f.p.File() }

// Finish makes the file durable. All writers must have been closed without error.
func (f *Field) Finish() error {
	if err := f.p.Sync(); err != nil {
		return fmt.Errorf("finish field file: %w", err)
	}
	return nil
}

// Close ends the writing once the file is in its place.
func (f *Field) Close() error { return f.p.Close() }

// Abort removes the partial file; after Close it does nothing.
func (f *Field) Abort() error { return f.p.Abort() }

// FieldWriter writes rows of one rank.
type FieldWriter struct {
	file Partial
	mesh solver.Mesh
	data int64 // offset of row 0
}

// OpenField opens the partial file that t names in dir, this rank's path of output.dir. When the file is not there, or
// not as its creator left it, the ranks do not share the directory, and the error says so.
func OpenField(dir string, t Ticket) (*FieldWriter, error) {
	w, err := openField(dir, t)
	if err != nil {
		return nil, fmt.Errorf("open field file: %w", err)
	}
	return w, nil
}

func openField(dir string, t Ticket) (*FieldWriter, error) {
	// The name holds a nonce: finding the file proves that it is the creator's. It is opened for writing alone, for
	// an NFS client that has read a page writes all of it, and with it a neighbour's bytes as they were.
	f, err := regular.OpenFile(filepath.Join(dir, t.File), os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, notShared(dir, t, "the file is not there")
	}
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && fi.Size() != t.Size {
		err = notShared(dir, t, fmt.Sprintf("its size is %d bytes", fi.Size()))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return FieldIn(&partial{file: f}, t), nil
}

// FieldIn returns a writer of this rank's rows to the partial file of t, which it closes.
func FieldIn(p Partial, t Ticket) *FieldWriter {
	return &FieldWriter{p, t.Mesh, t.Size - int64(t.Mesh.NY)*int64(t.Mesh.RowBytes())}
}

// ErrNotShared says that ranks see different directories under output.dir.
var ErrNotShared = errors.New("not the same directory on all nodes")

func notShared(dir string, t Ticket, why string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	here, err := os.Hostname()
	if err != nil {
		here = "this node"
	}
	return fmt.Errorf("output.dir %q: %w: %s has created %s with %d bytes, but on %s in %s %s; "+
		"use a file system that all nodes share, or set output.field to an empty name", dir, ErrNotShared, t.Host,
		t.File, t.Size, here, abs, why)
}

// WriteRows writes dense rows [lo, lo + len(rows)/RowBytes) of the mesh. Writers do not disturb each other.
func (w *FieldWriter) WriteRows(lo int, rows []byte) error {
	row := w.mesh.RowBytes()
	n := len(rows) / row
	if len(rows)%row != 0 || lo < 0 || lo+n > w.mesh.NY {
		return fmt.Errorf("write field: %d bytes at row %d are no rows of a mesh of %d x %d %v", len(rows), lo,
			w.mesh.NX, w.mesh.NY, w.mesh.DType)
	}
	if _, err := w.file.WriteAt(rows, w.data+int64(lo)*int64(row)); err != nil {
		return fmt.Errorf("write field rows [%d, %d): %w", lo, lo+n, err)
	}
	return nil
}

// Close makes the rows durable and closes the file. Only a nil error says that the rows are written.
func (w *FieldWriter) Close() error {
	err := w.file.Sync()
	if e := w.file.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("close field file: %w", err)
	}
	return nil
}

// Abandon closes the file, whose rows will not count.
func (w *FieldWriter) Abandon() error { return w.file.Close() }

// npyHeader returns the header of a C-ordered (NY, NX) array in numpy format 1.0, padded to whole 64 bytes.
func npyHeader(m solver.Mesh) []byte {
	dict := fmt.Sprintf("{'descr': '<f%d', 'fortran_order': False, 'shape': (%d, %d), }", m.DType.Size(), m.NY, m.NX)
	const before = 10 // magic, version, length
	total := (before + len(dict) + 1 + 63) / 64 * 64
	b := append(make([]byte, 0, total), "\x93NUMPY\x01\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(total-before))
	b = append(b, dict...)
	b = append(b, strings.Repeat(" ", total-len(b)-1)...)
	return append(b, '\n')
}
