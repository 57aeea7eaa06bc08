package output

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"jacobi/configs"
	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// Field is the file of the whole mesh while the ranks write it. One rank creates the file and sends its Ticket to
// the others. Every rank opens the file, writes its rows at their offsets and closes it. After all ranks have closed
// it, the creator calls Finish, and the Place puts it in place.
type Field struct {
	Tickets []Ticket // of the rows of the field, and of the arrays after them
	at      Place
	name    string
	file    File
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
func CreateField(at Place, name string, m solver.Mesh, format Format) (_ *Field, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("create field file: %w", err)
		}
	}()
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
	f, offset := &Field{at: at, name: name, file: p}, int64(0)
	for _, plane := range format.planes() {
		if err == nil {
			_, err = p.WriteAt(plane.Head, offset)
		}
		t := Ticket{file, size, offset + int64(len(plane.Head)), m, plane.DType}
		if t.Mesh.DType = format.From; plane.DType == Mask {
			t.Mesh.DType = Mask
		}
		f.Tickets = append(f.Tickets, t)
		offset += plane.bytes(m)
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

// Format is what stands in the file of a field before and after its rows, and their type. The rows are dense,
// little-endian, in order.
type Format struct {
	Plane                    // the field
	Planes []Plane           // arrays after it
	Tail   []byte            // the end of the file
	From   solver.DType      // of the values of the field: that in the file, or float64 of float32
	Group  map[string][]byte // the other files of a Zarr group, by name; nil for a file alone
}

// Plane is the rows of an array in a file.
type Plane struct {
	Head  []byte // before its rows
	DType solver.DType
}

// Mask is the type of truth values and marks in files, of one byte.
const Mask solver.DType = 1

// planes returns the field and the arrays, in their order in the file.
func (f Format) planes() []Plane { return append([]Plane{f.Plane}, f.Planes...) }

// bytes returns the size of a plane.
func (p Plane) bytes(m solver.Mesh) int64 {
	return int64(len(p.Head)) + int64(m.NY)*int64(m.NX)*int64(p.DType.Size())
}

// VTI is the ending of the names of files in VTK's format for images.
const VTI = ".vti"

// FormatOf returns the format of a file by its name: VTK's ImageData for .vti, with arrays, the values of a Zarr group
// for .zarr, else NumPy's .npy. hx and hy are the spacings of the mesh. The sizes of the format do not depend on them.
// The type is that of the mesh.
func FormatOf(name string, m solver.Mesh, hx, hy float64, arrays ...configs.Array) Format {
	if strings.EqualFold(filepath.Ext(name), VTI) {
		return vtiFormat(m, hx, hy, arrays)
	}
	if isZarr(name) {
		return zarrFormat(m, hx, hy)
	}
	return Format{Plane: Plane{npyHead(m), m.DType}, From: m.DType}
}

// ArrayFormat returns the format of the file of an array other than the field, by its name.
func ArrayFormat(name string, m solver.Mesh, hx, hy float64, mask, narrow bool) Format {
	if mask {
		m.DType = Mask
		return FormatOf(name, m, hx, hy)
	}
	return FieldFormat(configs.Output{Field: name, Float32: narrow}, m, hx, hy)
}

// FieldFormat returns the format of the field of a run. A .vti file also has arrays.
func FieldFormat(o configs.Output, m solver.Mesh, hx, hy float64, arrays ...configs.Array) Format {
	from := m.DType
	if o.Float32 {
		m.DType = solver.Float32
	}
	f := FormatOf(o.Field, m, hx, hy, arrays...)
	f.From = from
	return f
}

// Bytes returns the size of a file of this format with the rows of the mesh.
func (f Format) Bytes(m solver.Mesh) (int64, error) {
	row, around := int64(0), int64(len(f.Tail))
	for _, p := range f.planes() {
		row += int64(m.NX) * int64(p.DType.Size())
		around += int64(len(p.Head))
	}
	if int64(m.NY) > (math.MaxInt64-around)/row {
		return 0, fmt.Errorf("a mesh of %d x %d is too large for a file", m.NX, m.NY)
	}
	return around + int64(m.NY)*row, nil
}

// FieldBytes returns the size of the file of a field. That of a .vti file includes the arrays that the keys ask for.
func FieldBytes(o configs.Output, m solver.Mesh) (int64, error) {
	return FieldFormat(o, m, 1, 1, o.Arrays()...).Bytes(m)
}

// npyHead returns the header of a C-ordered (NY, NX) array in numpy format 1.0, padded to a multiple of 64 bytes.
func npyHead(m solver.Mesh) []byte {
	descr := fmt.Sprintf("<f%d", m.DType.Size())
	if m.DType == Mask {
		descr = "|b1"
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }", descr, m.NY, m.NX)
	const before = 10 // magic, version, length
	total := (before + len(dict) + 1 + 63) / 64 * 64
	b := append(make([]byte, 0, total), "\x93NUMPY\x01\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(total-before))
	b = append(b, dict...)
	b = append(b, strings.Repeat(" ", total-len(b)-1)...)
	return append(b, '\n')
}

// vtiHead is the length of the head of a .vti file with the field alone. It holds every mesh and spacing, and aligns
// the rows. One with further arrays has twice that.
const vtiHead = 1024

// Ghosts is the array in which ParaView and VTK look for points that they are to leave out, marked with HiddenPoint.
const (
	Ghosts      = "vtkGhostType"
	HiddenPoint = 2
)

// vtiFormat returns the format of one VTK XML file of type ImageData (The VTK User's Guide, "VTK File Formats"). The
// rows are appended as raw bytes, those of each array after the number of these bytes. The point (ix, iy) is at
// x = ix hx, y = iy hy.
func vtiFormat(m solver.Mesh, hx, hy float64, arrays []configs.Array) Format {
	f := Format{Plane: Plane{DType: m.DType}, Tail: []byte("\n</AppendedData>\n</VTKFile>\n"), From: m.DType}
	length := func(t solver.DType) uint64 { return uint64(m.NY) * uint64(m.NX) * uint64(t.Size()) }
	line := func(kind, name string, offset uint64) string {
		return fmt.Sprintf(`        <DataArray type="%s" Name="%s" format="appended" offset="%d"/>`+"\n", kind, name,
			offset)
	}
	real := fmt.Sprintf("Float%d", 8*m.DType.Size())
	size, offset, list := vtiHead, 8+length(m.DType), line(real, "u", 0)
	for _, a := range arrays {
		size = 2 * vtiHead
		p, kind := Plane{DType: m.DType}, real
		if a.Mask {
			p.DType, kind = Mask, "UInt8"
		}
		p.Head = binary.LittleEndian.AppendUint64(nil, length(p.DType))
		list += line(kind, a.Name, offset)
		offset += 8 + length(p.DType)
		f.Planes = append(f.Planes, p)
	}
	head := fmt.Sprintf(`<?xml version="1.0"?>
<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <ImageData WholeExtent="0 %[1]d 0 %[2]d 0 0" Origin="0 0 0" Spacing="%[3]v %[4]v 1">
    <Piece Extent="0 %[1]d 0 %[2]d 0 0">
      <PointData Scalars="u">
%[5]s      </PointData>
    </Piece>
  </ImageData>
`, m.NX-1, m.NY-1, hx, hy, list)
	const appended = `<AppendedData encoding="raw">` + "\n_"
	head += strings.Repeat(" ", size-8-len(appended)-len(head)) + appended
	f.Head = binary.LittleEndian.AppendUint64([]byte(head), length(m.DType))
	return f
}

// Float32 rounds values of float64 to float32 and appends them to dst, which may be rows[:0]. A finite value beyond the
// range of float32 becomes an infinity; the error names the first one.
func Float32(dst, rows []byte) ([]byte, error) {
	var beyond error
	for ; len(rows) >= 8; rows = rows[8:] {
		v := math.Float64frombits(binary.LittleEndian.Uint64(rows))
		f := float32(v)
		if beyond == nil && math.IsInf(float64(f), 0) && !math.IsInf(v, 0) {
			beyond = fmt.Errorf("%g is beyond float32", v)
		}
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(f))
	}
	return dst, beyond
}

// narrower makes rows of a field those of its file.
type narrower struct {
	from, to solver.DType
	buf      []byte
}

// narrowed is the number of values that a core makes float32 at a time.
const narrowed = 1 << 14

// rows returns rows as they stand in the file. The result is valid until the next call.
func (n *narrower) rows(rows []byte) ([]byte, error) {
	if n.from == n.to {
		return rows, nil
	}
	values := len(rows) / 8
	n.buf = slices.Grow(n.buf[:0], 4*values)[:4*values]
	return n.buf, parallel.Each((values+narrowed-1)/narrowed, func(i int) error {
		lo, hi := i*narrowed, min((i+1)*narrowed, values)
		_, err := Float32(n.buf[4*lo:4*lo:4*hi], rows[8*lo:8*hi])
		return err
	})
}
