package output

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/regular"
	"jacobi/solver"
)

// Field is the file of the whole mesh while the ranks write it. One rank creates the file and sends its Ticket to
// the others. Every rank opens the file with the ticket, writes its rows at their offsets and closes it. After all
// ranks have closed it, the creator calls Finish, and the Place commits it.
type Field struct {
	p      Partial
	ticket Ticket
	planes []Ticket
}

// Ticket identifies the partial file to every rank.
type Ticket struct {
	File string      `json:"file"` // name in output.dir; partly random, so that it is unique
	Size int64       `json:"size"` // bytes
	Data int64       `json:"data"` // offset of row 0
	Host string      `json:"host"` // of the creator, for messages
	Mesh solver.Mesh `json:"mesh"`
	// DType is the type of the values in the file.
	DType solver.DType `json:"dtype"`
}

// CreateField creates the partial file for name and mesh m, writes what surrounds the rows and reserves room for them.
// A disk that is too full therefore gives ErrNoSpace before the sweeps, not after them.
func CreateField(at Place, name, runID string, m solver.Mesh, format Format) (*Field, error) {
	f, err := createField(at, name, runID, m, format)
	if err != nil {
		return nil, fmt.Errorf("create field file: %w", err)
	}
	return f, nil
}

func createField(at Place, name, runID string, m solver.Mesh, format Format) (*Field, error) {
	size, err := format.Bytes(m)
	if err != nil {
		return nil, err
	}
	p, err := at.Create(name, runID, size)
	if err != nil {
		return nil, err
	}
	_, err = p.WriteAt(format.Head, 0)
	for i, plane := range format.Planes {
		if err == nil {
			_, err = p.WriteAt(plane.Head, format.planeAt(m, i))
		}
	}
	if err == nil { // the end gives the file its final size, which OpenField checks
		end := format.Tail
		if len(end) == 0 {
			end = []byte{0}
		}
		_, err = p.WriteAt(end, size-int64(len(end)))
	}
	if err == nil {
		err = p.Sync() // from here on other nodes see the file on a network file system
	}
	if err != nil {
		p.Abort()
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	f := &Field{p, Ticket{p.File(), size, int64(len(format.Head)), host, m, format.DType}, nil}
	f.ticket.Mesh.DType = format.From
	for i, plane := range format.Planes {
		t := f.ticket
		t.Data = format.planeAt(m, i) + int64(len(plane.Head))
		if t.DType = plane.DType; plane.DType == Mask {
			t.Mesh.DType = Mask
		}
		f.planes = append(f.planes, t)
	}
	return f, nil
}

// Planes returns the tickets of the arrays after the rows of the field.
func (f *Field) Planes() []Ticket { return f.planes }

// Ticket returns the argument of OpenField for this rank and the others.
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

// Close closes the file. The partial stays, so that the Place can commit it.
func (f *Field) Close() error { return f.p.Close() }

// Abort removes the partial file; after Close it does nothing.
func (f *Field) Abort() error { return f.p.Abort() }

// FieldWriter writes the rows of one rank.
type FieldWriter struct {
	file Partial
	mesh solver.Mesh
	data int64 // offset of row 0

	narrower narrower
}

// OpenField opens the partial file of t in dir, this rank's path of output.dir. If the file is missing or has another
// size, the ranks do not share the directory, and the error wraps ErrNotShared.
func OpenField(dir string, t Ticket) (*FieldWriter, error) {
	w, err := openField(dir, t)
	if err != nil {
		return nil, fmt.Errorf("open field file: %w", err)
	}
	return w, nil
}

func openField(dir string, t Ticket) (*FieldWriter, error) {
	// The name contains a nonce, so a file of this name is the creator's. The file is opened for writing only: an NFS
	// client that has read a page writes back the whole page, with stale bytes of a neighbour's rows.
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

// FieldIn returns a writer of this rank's rows to p, the partial file of t. The writer closes p.
func FieldIn(p Partial, t Ticket) *FieldWriter {
	return &FieldWriter{p, t.Mesh, t.Data, narrower{from: t.Mesh.DType, to: t.DType}}
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

// WriteRows writes dense rows [lo, lo + len(rows)/RowBytes) of the mesh, in the type of the file. Writers of different
// rows may run at the same time.
func (w *FieldWriter) WriteRows(lo int, rows []byte) error {
	row := w.mesh.RowBytes()
	n := len(rows) / row
	if len(rows)%row != 0 || lo < 0 || lo+n > w.mesh.NY {
		return fmt.Errorf("write field: %d bytes at row %d are no rows of a mesh of %d x %d %v", len(rows), lo,
			w.mesh.NX, w.mesh.NY, w.mesh.DType)
	}
	rows, err := w.narrower.rows(rows)
	if err == nil {
		_, err = w.file.WriteAt(rows, w.data+int64(lo)*int64(w.mesh.NX*w.narrower.to.Size()))
	}
	if err != nil {
		return fmt.Errorf("write field rows [%d, %d): %w", lo, lo+n, err)
	}
	return nil
}

// Close makes the rows durable and closes the file. The rows are written only if it returns nil.
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

// Loosen has Close leave it to the system to write the rows to disk; see Held.Loosen.
func (w *FieldWriter) Loosen() { Loose(w.file) }

// Abandon closes the file without syncing, because its rows will not be used.
func (w *FieldWriter) Abandon() error { return w.file.Close() }
