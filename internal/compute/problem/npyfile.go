package problem

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/npy"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
	"jacobi/solver"
)

// npyFile is an open .npy file with a field of the mesh. It is read by blocks of rows, which are verified; the whole
// field is never in memory. The file stays open: a file that takes its name later is another one.
type npyFile struct {
	f       *os.File
	mesh    solver.Mesh
	item    npyItem
	descr   string
	fortran bool
	offset  int64 // of the first value
	// mapped is the file if it is in Fortran order, where a row may be spread over as many pages as it has values.
	mapped []byte
	*blocks
	rows int // of a block
	kept *sharing[[]byte]
}

// blockBytes is the size of a block of an array that has shorter rows.
const blockBytes = 128 << 10

// kept is how many blocks are kept, since several rows of a block are read one after the other, by several goroutines:
// those that each goroutine reads, and the ones beside them.
func kept() int { return 2*runtime.GOMAXPROCS(0) + 4 }

// npyItem is the type and byte order of a file's values.
type npyItem struct {
	kind  byte // as NumPy has it: b for truth values, i and u for integers, f
	size  int  // in bytes
	order binary.ByteOrder
}

// npyItemOf returns the type that a header describes, if it is supported.
func npyItemOf(descr string) (t npyItem, ok bool) {
	if len(descr) != 3 || !slices.Contains(strings.Fields("b1 i1 i2 i4 i8 u1 u2 u4 u8 f4 f8"), descr[1:]) {
		return t, false
	}
	t = npyItem{descr[1], int(descr[2] - '0'), binary.LittleEndian}
	if descr[0] == '>' {
		t.order = binary.BigEndian
	}
	return t, descr[0] == '<' || descr[0] == '>' || descr[0] == '|' && t.size == 1
}

// value returns the value at the start of raw.
func (t npyItem) value(raw []byte) float64 {
	var bits uint64
	switch t.size {
	case 1:
		bits = uint64(raw[0])
	case 2:
		bits = uint64(t.order.Uint16(raw))
	case 4:
		bits = uint64(t.order.Uint32(raw))
	default:
		bits = t.order.Uint64(raw)
	}
	switch above := 64 - 8*t.size; {
	case t.kind == 'f' && t.size == 4:
		return float64(math.Float32frombits(uint32(bits)))
	case t.kind == 'f':
		return math.Float64frombits(bits)
	case t.kind == 'i':
		return float64(int64(bits<<above) >> above)
	}
	return float64(bits)
}

// openLine reads the values of a line of points from the file at path. key has their number.
func openLine(path, key string, points int) (values []float64, b *blocks, err error) {
	n, err := openNPY(path, solver.Mesh{NX: points, NY: 1, DType: solver.Float64}, true, key)
	if err != nil {
		return nil, nil, err
	}
	raw := make([]byte, 8*points)
	if err := errors.Join(n.read(raw, 0, 0), n.close()); err != nil {
		return nil, nil, err
	}
	values = make([]float64, points)
	solver.Float64.Decode(values, raw)
	return values, n.blocks, nil
}

// openNPY opens the file at path. It fails unless the file has exactly one array of numbers or truth values of shape
// (NY, NX), or (NX,) for a line, but for sides of 1. keys have these numbers. Values are read as values of the mesh's
// type.
func openNPY(path string, mesh solver.Mesh, line bool, keys string) (*npyFile, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err) // the caller names the path
	}
	n := &npyFile{f: f, mesh: mesh}
	if err := n.check(line, keys); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return n, nil
}

func (n *npyFile) check(line bool, keys string) error {
	info, err := n.f.Stat()
	if err != nil {
		return err
	}
	h, err := npy.ReadHeader(n.f)
	if err != nil {
		return err
	}
	item, ok := npyItemOf(h.Descr)
	if !ok {
		return fmt.Errorf("type %s; it must be float32, float64, an integer of at most 64 bits or bool",
			show.Text(h.Descr))
	}
	shape, dimensions := fmt.Sprintf("(%d, %d)", n.mesh.NY, n.mesh.NX), 2
	if line {
		shape, dimensions = fmt.Sprintf("(%d,)", n.mesh.NX), 1
	}
	if !fits(h, shape) {
		return misfit(h, dimensions, fmt.Sprintf("%s (%s)", shape, keys))
	}
	n.item, n.descr, n.offset, n.fortran = item, h.Descr, h.Size, h.Fortran
	n.rows = max(1, blockBytes/n.rowBytes())
	n.blocks = &blocks{sums: make([]uint64, (n.mesh.NY+n.rows-1)/n.rows)}
	n.kept = &sharing[[]byte]{keep: kept()}
	whole := n.at(n.mesh.NY-1, n.mesh.NX-1) + int64(item.size)
	if info.Size() < whole {
		return fmt.Errorf("truncated: %d bytes of %d", info.Size(), whole)
	}
	if info.Size() > whole {
		return fmt.Errorf("%d bytes after the end of the array", info.Size()-whole)
	}
	if n.fortran {
		n.mapped, err = unix.Mmap(int(n.f.Fd()), 0, int(whole), unix.PROT_READ, unix.MAP_SHARED)
	}
	return err
}

// fits reports whether an array has a shape, but for sides of 1.
func fits(h npy.Header, shape string) bool { return h.Shape == shape || h.Squeezed() == shape }

// misfit is the error of an array of another shape. Where it has not even as many dimensions, the numbers of points do
// not matter.
func misfit(h npy.Header, dimensions int, allowed string) error {
	switch {
	case h.Dimensions() == dimensions:
	case dimensions == 1:
		allowed = "a line of values"
	default:
		allowed = "that of rows and columns"
	}
	return fmt.Errorf("shape %s; it must be %s", show.Text(h.Shape), allowed)
}

func (n *npyFile) close() error {
	if n.mapped == nil {
		return n.f.Close()
	}
	mapped := n.mapped
	n.mapped = nil
	return errors.Join(unix.Munmap(mapped), n.f.Close())
}

// at returns the offset of a value in the file.
func (n *npyFile) at(iy, ix int) int64 {
	i := int64(iy)*int64(n.mesh.NX) + int64(ix)
	if n.fortran {
		i = int64(ix)*int64(n.mesh.NY) + int64(iy)
	}
	return n.offset + i*int64(n.item.size)
}

func (n *npyFile) rowBytes() int { return n.mesh.NX * n.item.size }

// row calls do with the bytes of a row.
func (n *npyFile) row(iy int, do func(raw []byte)) error {
	return n.kept.use(iy/n.rows, n.load, func(block []byte) { do(block[iy%n.rows*n.rowBytes():][:n.rowBytes()]) })
}

// readBlock reads block k, if it is not kept.
func (n *npyFile) readBlock(k int) error { return n.kept.use(k, n.load, func([]byte) {}) }

// load reads the rows of block k and verifies them.
func (n *npyFile) load(k int, to *[]byte) error {
	lo, hi := k*n.rows, min((k+1)*n.rows, n.mesh.NY)
	block, err := sized(*to, (hi-lo)*n.rowBytes()), error(nil)
	*to = block
	if n.fortran {
		err = guard(func() { n.gather(block, lo, hi-lo) })
	} else if _, err = n.f.ReadAt(block, n.at(lo, 0)); errors.Is(err, io.EOF) {
		err = errShorter
	}
	if err != nil {
		return err
	}
	return n.verify(k, sumOf(n.descr, block))
}

// gather copies rows from row lo on of a mapped file to dst.
func (n *npyFile) gather(dst []byte, lo, rows int) {
	size := n.item.size
	for ix := range n.mesh.NX {
		from := n.mapped[n.at(lo, ix):][:rows*size]
		for i := range rows {
			copy(dst[i*n.rowBytes()+ix*size:][:size], from[i*size:])
		}
	}
}

// read fills dst with values of row iy, starting at column ix, rounded to the type of the mesh.
func (n *npyFile) read(dst []byte, iy, ix int) error {
	return n.row(iy, func(raw []byte) {
		size := n.item.size
		raw = raw[ix*size:]
		if n.item == (npyItem{'f', n.mesh.DType.Size(), binary.LittleEndian}) {
			copy(dst, raw)
			return
		}
		for i := range len(dst) / n.mesh.DType.Size() {
			put(n.mesh.DType, dst[i*n.mesh.DType.Size():], n.item.value(raw[i*size:]))
		}
	})
}

// guard calls read, which reads mapped memory. If the file has been truncated, the access faults; guard turns the fault
// into an error.
func guard(read func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = errShorter
		}
	}()
	read()
	return nil
}

var errShorter = errors.New("the file became shorter, or could not be read")

// readBools fills dst with the truth values of row iy. 255 counts as true, too: masks of programs for images have it.
func (n *npyFile) readBools(dst []bool, iy int) (err error) {
	size, quick := n.item.size, n.item.size == 1
	failed := n.row(iy, func(raw []byte) {
		for i := range dst {
			if quick && raw[i] <= 1 {
				dst[i] = raw[i] == 1
				continue
			}
			v := n.item.value(raw[i*size:])
			if dst[i] = v == 1 || v == 255; !dst[i] && v != 0 && err == nil {
				err = fmt.Errorf("column %d: %v is no truth value, which is 0, 1 or 255", i, v)
			}
		}
	})
	return cmp.Or(failed, err)
}

// exact returns a value of the file without rounding it to the type of the mesh.
func (n *npyFile) exact(iy, ix int) (float64, error) {
	wide := *n
	wide.mesh.DType = solver.Float64
	var b [8]byte
	err := wide.read(b[:], iy, ix)
	return valueAt(solver.Float64, b[:]), err
}

// warnings describes properties of the file that a user may not expect.
func (n *npyFile) warnings() (lines []string) {
	if n.item.kind == 'f' && n.item.size == 8 && n.mesh.DType == solver.Float32 {
		lines = append(lines, "its values are float64, and are rounded to grid.dtype float32")
	}
	if n.fortran {
		lines = append(lines, "it is in Fortran order, which is slow to read by rows; numpy.ascontiguousarray "+
			"gives the other one")
	}
	return lines
}
