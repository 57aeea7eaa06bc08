// Package kernel holds the innermost loops of the CPU backend, for each instruction set and type of value: the sweep of
// a few rows, the exact sum of norm groups, and the conversion of rows between dense order and the order of the sweep.
package kernel

import (
	"fmt"
	"strings"
	"unsafe"

	"jacobi/solver"
)

//go:generate go run ./generate -isa avx512 -pkg kernel -out avx512_amd64.s
//go:generate go run ./generate -isa avx2 -pkg kernel -out avx2_amd64.s

// Rows is the largest number of rows of a Span.
const Rows = solver.GroupRows

// Span describes the work of one call: a few rows of a range of blocks. A block is 4 vectors of Lanes values; lane l of
// vector j of block b holds column 4*(b*Lanes+l)+j. The four columns of a norm group are therefore in one lane, and the
// west and east neighbours of most columns are in other vectors at the same lane. Each row has a pointer of its own,
// because rows may lie in a ring. Offsets are in bytes.
type Span struct {
	Src    [Rows + 2]unsafe.Pointer // previous sweep: the row above the first row, the rows, the row below the last
	Dst    [Rows]unsafe.Pointer     // Dst[i] may be Src[i], the row above it
	Off    int                      // from a row's pointer to its first block
	AccOff int                      // from Acc to the first block's groups
	// Acc holds running sums of squares, one value for each norm group. The first Break rows are of the groups there.
	// Rows after them are of the next groups, whose sums start from 0 and lie AccNext bytes further.
	Acc unsafe.Pointer
	// Carry holds one vector for each row: vector 3 of the block to the left, as in Src. The call replaces it with that
	// of its last block.
	Carry   unsafe.Pointer
	Rows    int // 1 to Rows
	Break   int // 1 to the number of rows; kernels that leave Acc alone do not read it
	AccNext int
	Blocks  int // >= 1
	Restart int // 1: start Acc from 0 instead of reading it; else 0

	// The rest is for Masked, and for operators with a source. Swept has a row of masks for each row: for each block 4
	// masks of MaskBytes, one for each vector, whose bit l is set if lane l is swept. SweptOff is the offset to the
	// first block's masks. Sources has a row of b for each row. Weights is h of the general operator in every lane of a
	// vector, then q.
	Swept    [Rows]unsafe.Pointer
	Sources  [Rows]unsafe.Pointer
	SweptOff int
	Weights  unsafe.Pointer

	// The rest is for operators with terms. Terms has a row of weights for each row: for each block of the field a
	// block for each term, so the first one is Off times their number from the pointer. With each block of a row,
	// kernels of some machines fetch AheadBytes for a later task, from the place that Ahead has for the block as Terms
	// has for its weights.
	Terms [Rows]unsafe.Pointer
	Ahead [Rows]unsafe.Pointer
}

// MaxVector is the largest number of bytes of a vector.
const MaxVector = 64

// AheadBytes are two lines of a cache.
const AheadBytes = 128

// MaskBytes returns the bytes of a mask for a vector of the given number of lanes.
func MaskBytes(lanes int) int { return max(1, lanes/8) }

// Kernel is one implementation for one type of value. Rows and Acc are aligned to vectors. Sweeps read one vector
// beyond the last block of a row of Src; its lane 0 matters if the column before it is swept.
type Kernel struct {
	Name       string
	Lanes      int
	ByOperator [operators]Functions // by Operator
	// Pack converts 4*Lanes*blocks dense columns into blocks; Unpack is the inverse. They are nil where plain Go is as
	// fast.
	Pack, Unpack func(dst, src unsafe.Pointer, blocks int)
	// collect adds n group sums, a multiple of Lanes and at most collectGroups, to the limbs of c. If a group sum is
	// not below Bound, collect adds nothing and returns false.
	collect func(c *Collector, acc unsafe.Pointer, n int) bool
}

// Functions are the sweeps with one operator.
type Functions struct {
	// Whole sweeps whole blocks, Bare in a sweep without a norm: it leaves Acc alone.
	Whole, Bare Pair
	// Masked sweeps blocks, edges among them, under the masks in Swept.
	Masked Pair
}

// Pair is two functions for the same work. Stream is Sweep with stores that bypass the caches, for a Dst too large for
// them; nil if the processor has no such stores. Any synchronisation of the Go runtime drains them, so another thread
// sees them after it.
type Pair struct{ Sweep, Stream func(*Span) }

// family is a kernel for both types of value.
type family struct {
	name     string
	usable   bool
	f32, f64 Kernel
}

func families() []family {
	return append(simdFamilies(), family{name: "portable", usable: true, f32: portable[float32](),
		f64: portable[float64]()})
}

// Names returns the names of the kernels that run on this machine, the best first. The last, "portable", runs
// everywhere.
func Names() []string {
	var names []string
	for _, f := range families() {
		if f.usable {
			names = append(names, f.name)
		}
	}
	return names
}

// Find returns the kernel called name, or the best one for "".
func Find(name string, t solver.DType) (Kernel, error) {
	for _, f := range families() {
		if !f.usable || name != "" && f.name != name {
			continue
		}
		k := f.f64
		if t == solver.Float32 {
			k = f.f32
		}
		k.Name = f.name
		return k, nil
	}
	return Kernel{}, fmt.Errorf("cpu kernel %q: this machine has %s", name, strings.Join(Names(), ", "))
}
