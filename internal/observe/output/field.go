package output

import (
	"errors"
	"fmt"

	"jacobi/solver"
)

// Field is the file of the whole mesh while the ranks write it. One rank creates the file and sends its Ticket to
// the others. Every rank opens the file, writes its rows at their offsets and closes it. After all ranks have closed
// it, the creator calls Finish, and the Place puts it in place.
type Field struct {
	at     Place
	name   string
	file   File
	ticket Ticket
	planes []Ticket
}

// Ticket tells every rank where its rows are in the file.
type Ticket struct {
	File string      `json:"file"` // staged
	Size int64       `json:"size"` // bytes
	Data int64       `json:"data"` // offset of row 0
	Mesh solver.Mesh `json:"mesh"`
	// DType is the type of the values in the file.
	DType solver.DType `json:"dtype"`
}

// CreateField creates the file for name and mesh m, writes what surrounds the rows and reserves room for them. A disk
// that is too full therefore gives ErrNoSpace before the sweeps, not after them.
func CreateField(at Place, name string, m solver.Mesh, format Format) (*Field, error) {
	f, err := createField(at, name, m, format)
	if err != nil {
		return nil, fmt.Errorf("create field file: %w", err)
	}
	return f, nil
}

func createField(at Place, name string, m solver.Mesh, format Format) (*Field, error) {
	size, err := format.Bytes(m)
	if err != nil {
		return nil, err
	}
	file := name
	if format.Group != nil {
		file += "/" + ShardFile
	}
	p, err := at.Create(file, size)
	if err != nil {
		return nil, err
	}
	f := &Field{at, name, p, Ticket{file, size, int64(len(format.Head)), m, format.DType}, nil}
	f.ticket.Mesh.DType = format.From
	_, err = p.WriteAt(format.Head, 0)
	for i, plane := range format.Planes {
		if err == nil {
			_, err = p.WriteAt(plane.Head, format.planeAt(m, i))
		}
		t := f.ticket
		t.Data = format.planeAt(m, i) + int64(len(plane.Head))
		if t.DType = plane.DType; plane.DType == Mask {
			t.Mesh.DType = Mask
		}
		f.planes = append(f.planes, t)
	}
	if err == nil { // the end gives the file its final size
		end := format.Tail
		if len(end) == 0 {
			end = []byte{0}
		}
		_, err = p.WriteAt(end, size-int64(len(end)))
	}
	for part, data := range format.Group {
		var w File
		if err == nil {
			w, err = at.Create(name+"/"+part, 0)
		}
		if err == nil {
			err = write(w, data)
		}
	}
	if err == nil {
		err = p.Sync() // from here on other nodes see the file on a network file system
	}
	if err != nil {
		return nil, errors.Join(err, f.Abort())
	}
	return f, nil
}

// Planes returns the tickets of the arrays after the rows of the field.
func (f *Field) Planes() []Ticket { return f.planes }

// Ticket returns what ranks need to write their rows.
func (f *Field) Ticket() Ticket { return f.ticket }

// Finish makes the file durable and closes it. All writers must have been closed without error.
func (f *Field) Finish() error {
	err := f.file.Sync()
	if err == nil {
		err = f.file.Close()
	}
	if err != nil {
		return fmt.Errorf("finish field file: %w", err)
	}
	return nil
}

// Abort removes the file, which is not in place.
func (f *Field) Abort() error {
	_ = f.file.Close() // it may be closed
	return f.at.Remove(f.name)
}

// FieldWriter writes the rows of one rank.
type FieldWriter struct {
	file File
	mesh solver.Mesh
	data int64 // offset of row 0

	narrower narrower
}

// NewFieldWriter returns a writer of this rank's rows to f, the file of t. The writer closes f.
func NewFieldWriter(f File, t Ticket) *FieldWriter {
	return &FieldWriter{f, t.Mesh, t.Data, narrower{from: t.Mesh.DType, to: t.DType}}
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

// Abandon closes the file without syncing, because its rows will not be used.
func (w *FieldWriter) Abandon() error { return w.file.Close() }
