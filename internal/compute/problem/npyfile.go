package problem

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"

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
	kept *blockCache
}

// blockBytes is the size of a block of an array that has shorter rows.
const blockBytes = 128 << 10

// npyItem is the type and byte order of a file's values. A truth value has the type 0.
type npyItem struct {
	dtype solver.DType
	order binary.ByteOrder
}

// size returns the bytes of a value.
func (t npyItem) size() int { return max(1, t.dtype.Size()) }

// npyItems returns the supported types of values by their names in a header.
func npyItems() map[string]npyItem {
	return map[string]npyItem{
		"<f4": {solver.Float32, binary.LittleEndian}, ">f4": {solver.Float32, binary.BigEndian},
		"<f8": {solver.Float64, binary.LittleEndian}, ">f8": {solver.Float64, binary.BigEndian},
	}
}

// value returns the value at the start of raw.
func (t npyItem) value(raw []byte) float64 {
	if t.dtype == solver.Float32 {
		return float64(math.Float32frombits(t.order.Uint32(raw)))
	}
	return math.Float64frombits(t.order.Uint64(raw))
}

// openLine reads the values of a line of points from the file at path. key has their number.
func openLine(path, key string, points int) (values []float64, b *blocks, err error) {
	n, err := openNPY(path, solver.Mesh{NX: points, NY: 1, DType: solver.Float64}, key, false)
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

// openNPY opens the file at path. It fails unless the file has exactly one array of shape (NY, NX), or (NX,) if line is
// the key of that number, and type float32 or float64, or bool if truth is set. Values are read as values of the mesh's
// type.
func openNPY(path string, mesh solver.Mesh, line string, truth bool) (*npyFile, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err) // the caller names the path
	}
	n := &npyFile{f: f, mesh: mesh}
	if err := n.check(line, truth); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return n, nil
}

func (n *npyFile) check(line string, truth bool) error {
	info, err := n.f.Stat()
	if err != nil {
		return err
	}
	h, err := npy.ReadHeader(n.f)
	if err != nil {
		return err
	}
	item, ok := npyItems()[h.Descr]
	switch {
	case truth && h.Descr != "|b1":
		return fmt.Errorf("type %s; it must be |b1 (bool)", show.Text(h.Descr))
	case !truth && !ok:
		return fmt.Errorf("type %s; it must be <f4, <f8, >f4 or >f8 (float32 or float64)", show.Text(h.Descr))
	}
	shape, keys := fmt.Sprintf("(%d, %d)", n.mesh.NY, n.mesh.NX), "grid.ny, grid.nx"
	if line != "" {
		shape, keys = fmt.Sprintf("(%d,)", n.mesh.NX), line
	}
	if h.Shape != shape {
		return fmt.Errorf("shape %s; it must be %s (%s)", show.Text(h.Shape), shape, keys)
	}
	n.item, n.descr, n.offset, n.fortran = item, h.Descr, h.Size, h.Fortran
	n.rows = max(1, blockBytes/n.rowBytes())
	n.blocks = newBlocks((n.mesh.NY + n.rows - 1) / n.rows)
	n.kept = &blockCache{bytes: min(n.rows, n.mesh.NY) * n.rowBytes()}
	whole := n.at(n.mesh.NY-1, n.mesh.NX-1) + int64(item.size())
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
	return n.offset + i*int64(n.item.size())
}

func (n *npyFile) rowBytes() int { return n.mesh.NX * n.item.size() }

// row calls do with the bytes of a row.
func (n *npyFile) row(iy int, do func(raw []byte)) error {
	return n.kept.use(iy/n.rows, n.load, func(block []byte) { do(block[iy%n.rows*n.rowBytes():][:n.rowBytes()]) })
}

// readBlock reads block k, if it is not kept.
func (n *npyFile) readBlock(k int) error { return n.kept.use(k, n.load, func([]byte) {}) }

// load reads the rows of block k and verifies them.
func (n *npyFile) load(k int, block []byte) error {
	lo, hi := k*n.rows, min((k+1)*n.rows, n.mesh.NY)
	block = block[:(hi-lo)*n.rowBytes()]
	var err error
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
	size := n.item.size()
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
		size := n.item.size()
		raw = raw[ix*size:]
		if n.item == (npyItem{n.mesh.DType, binary.LittleEndian}) {
			copy(dst, raw)
			return
		}
		for i := range len(dst) / n.mesh.DType.Size() {
			n.put(dst, i, n.item.value(raw[i*size:]))
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

// put writes v, rounded to the type of the mesh, as value i of dst.
func (n *npyFile) put(dst []byte, i int, v float64) {
	if n.mesh.DType == solver.Float32 {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(float32(v)))
		return
	}
	binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(v))
}

// readBools fills dst with the truth values of row iy.
func (n *npyFile) readBools(dst []bool, iy int) (err error) {
	failed := n.row(iy, func(raw []byte) {
		for i, b := range raw {
			if b > 1 && err == nil {
				err = fmt.Errorf("column %d: byte %d is no truth value, which is 0 or 1", i, b)
			}
			dst[i] = b == 1
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
	return float64At(b[:]), err
}

// float64At returns the float64 at the start of b.
func float64At(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

// warnings describes properties of the file that a user may not expect.
func (n *npyFile) warnings() (lines []string) {
	if n.item.dtype == solver.Float64 && n.mesh.DType == solver.Float32 {
		lines = append(lines, "its values are float64, and are rounded to grid.dtype float32")
	}
	if n.fortran {
		lines = append(lines, "it is in Fortran order, which is slow to read by rows; numpy.ascontiguousarray "+
			"gives the other one")
	}
	return lines
}
