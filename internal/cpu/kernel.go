package cpu

import (
	"fmt"
	"strings"
	"unsafe"

	"jacobi/solver"
)

// bandRows is the most rows that one call of a kernel sweeps.
const bandRows = solver.GroupRows

// span is the share of a sweep that one call of a kernel does: rows x blocks. Rows are given one by one, because they
// may lie in a ring. Offsets are in bytes.
type span struct {
	src     [bandRows + 2]unsafe.Pointer // the row above the first, the rows, the row below the last; of the sweep before
	dst     [bandRows]unsafe.Pointer     // dst[i] may share memory with src[i], the row above it
	off     int                          // to the first block of a row
	accOff  int                          // to its place in acc
	acc     unsafe.Pointer               // one value a norm group: running sums of squares, read and written
	carry   unsafe.Pointer               // by row one vector: vector 3 of the block before in the source; left behind for the block after
	masks   unsafe.Pointer               // edge kernels: 4 vectors, all bits set in the columns to sweep, clear in those to keep
	rows    int                          // 1 to bandRows
	blocks  int                          // >= 1; edge kernels do one block
	restart int                          // 1: start acc from 0 instead of reading it
}

// kernel is one implementation of the sweep for one type of value. Its functions read one vector beyond the last
// block of a source row and do not use what they read there beyond lane 0 of a swept column.
type kernel struct {
	name  string
	lanes int
	// sweep sweeps whole blocks, edge one block under masks.
	sweep, edge func(*span)
	// collect adds n group sums, a multiple of lanes, to the exact sum of c.
	collect func(c *collector, acc unsafe.Pointer, n int)
}

// Kernels returns the names of the kernels that run on this machine, the best first. The last, "portable", runs everywhere.
func Kernels() []string {
	names := make([]string, 0, 3)
	for _, f := range families() {
		names = append(names, f.name)
	}
	return names
}

// family is a kernel for either type.
type family struct {
	name     string
	f32, f64 kernel
}

func families() []family {
	return append(simdFamilies(), family{name: "portable", f32: portable[float32](), f64: portable[float64]()})
}

// findKernel returns the kernel called name, or the best one for "".
func findKernel(name string, t solver.DType) (kernel, error) {
	for _, f := range families() {
		if name != "" && f.name != name {
			continue
		}
		if t == solver.Float32 {
			return f.f32, nil
		}
		return f.f64, nil
	}
	return kernel{}, fmt.Errorf("cpu kernel %q: this machine has %s", name, strings.Join(Kernels(), ", "))
}
