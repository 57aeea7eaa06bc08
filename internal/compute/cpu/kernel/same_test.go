package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"jacobi/solver"
)

// The functions of every kernel of this machine give the bits of the portable kernel.
func TestSameBits(t *testing.T) {
	for _, name := range Names() {
		if name == "portable" {
			continue
		}
		for _, dtype := range []solver.DType{solver.Float32, solver.Float64} {
			k, err := Find(name, dtype)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(name+" "+dtype.String(), func(t *testing.T) {
				if dtype == solver.Float32 {
					sameBits[float32](t, k)
				} else {
					sameBits[float64](t, k)
				}
			})
		}
	}
}

// sameBits compares k with the portable kernel at random spans.
func sameBits[F float](t *testing.T, k Kernel) {
	want, random := portable[F](), rand.New(rand.NewPCG(uint64(k.Lanes), 7))
	both := func(name string, got, want Pair, o Operator, masked bool) {
		for _, f := range []func(*Span){got.Sweep, got.Stream} {
			if f == nil {
				continue
			}
			for range 60 {
				c := newSpanCase[F](random, k.Lanes, o, masked)
				c.check(t, name, f, want.Sweep)
			}
		}
	}
	for o := range operators {
		got, want := k.Sweeps[o], want.Sweeps[o]
		for name, f := range map[string][2]Pair{"whole": {got.Whole, want.Whole}, "bare": {got.Bare, want.Bare}} {
			both(fmt.Sprintf("operator %d %s", o, name), f[0], f[1], o, false)
		}
		both(fmt.Sprintf("operator %d masked", o), got.Masked, want.Masked, o, true)
	}
}

// spanCase is the work of one call: rows of random values, the result of the row above in the place of the row itself
// or apart from it.
type spanCase[F float] struct {
	lanes, rows, blocks int
	restart, groupBreak int
	inPlace             bool
	src                 [Rows + 2][]F // dense, with a block more than is swept
	sources             [Rows][]F
	terms               [Rows][][]F // by term
	swept               [Rows][]bool
	west, acc           []F // by row, by group: those of the first rows, then those of the rows after groupBreak
	h, q                F
}

func newSpanCase[F float](random *rand.Rand, lanes int, o Operator, masked bool) *spanCase[F] {
	c := &spanCase[F]{lanes: lanes, rows: 1 + random.IntN(Rows), blocks: 1 + random.IntN(4), restart: random.IntN(2),
		inPlace: random.IntN(2) == 1, h: F(random.Float64()), q: F(random.Float64())}
	// A third of the spans hold denormal numbers, and a third numbers whose sums and squares are.
	least := 0x1p-1074
	if unsafe.Sizeof(F(0)) == 4 {
		least = 0x1p-149
	}
	scale := []float64{1, least, math.Sqrt(least)}[random.IntN(3)]
	value := func() F {
		v := math.Ldexp(random.Float64()-0.5, random.IntN(8))
		if scale != 1 {
			v = math.Ldexp(v, random.IntN(30))
		}
		return F(v * scale)
	}
	values := func(n int) []F {
		v := make([]F, n)
		for i := range v {
			v[i] = value()
		}
		return v
	}
	columns := 4 * lanes * c.blocks
	for i := range c.src {
		c.src[i] = values(columns + 4*lanes)
	}
	for i := range c.terms {
		c.sources[i] = values(columns)
		for range o.Terms() {
			c.terms[i] = append(c.terms[i], values(columns))
		}
		c.swept[i] = make([]bool, columns)
		for x := range columns {
			c.swept[i][x] = !masked || random.IntN(4) > 0
		}
	}
	c.groupBreak = 1 + random.IntN(c.rows)
	c.west, c.acc = values(Rows), values(2*columns/4)
	for i, v := range c.acc {
		c.acc[i] = F(math.Abs(float64(v)))
	}
	return c
}

// span is a Span with the memory that it points to.
type span[F float] struct {
	Span
	lanes      int
	dst        [Rows][]F
	carry, acc []F
}

// index returns the place of a column in a row of blocks.
func index(column, lanes int) int {
	q := column / 4
	return q/lanes*4*lanes + column%4*lanes + q%lanes
}

// aligned returns n zeros at a multiple of MaxVector.
func aligned[V float | byte](n int) []V {
	v := make([]V, n+MaxVector)
	for uintptr(unsafe.Pointer(unsafe.SliceData(v)))%MaxVector != 0 {
		v = v[1:]
	}
	return v[:n]
}

func pointer[V any](v []V) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(v)) }

// span lays the case out for a kernel of the given number of lanes.
func (c *spanCase[F]) span(lanes int) *span[F] {
	s := &span[F]{lanes: lanes}
	place := func(dense []F) []F {
		row := aligned[F](len(dense))
		for x, v := range dense {
			row[index(x, lanes)] = v
		}
		return row
	}
	s.Rows, s.Blocks, s.Restart = c.rows, c.blocks*c.lanes/lanes, c.restart
	for i := range c.rows + 2 {
		row := place(c.src[i])
		s.Src[i] = pointer(row)
		if i >= c.rows {
			continue
		}
		s.dst[i] = row
		if !c.inPlace {
			s.dst[i] = aligned[F](len(row))
		}
		s.Dst[i] = pointer(s.dst[i])
		s.Sources[i] = pointer(place(c.sources[i]))
		n, block := len(c.terms[i]), 4*lanes
		rows := aligned[F](n * s.Blocks * block)
		for k, dense := range c.terms[i] {
			for b := range s.Blocks {
				copy(rows[(b*n+k)*block:][:block], place(dense)[b*block:])
			}
		}
		s.Terms[i] = pointer(rows)
		size := MaskBytes(lanes)
		masks := make([]byte, s.Blocks*4*size)
		for x, swept := range c.swept[i] {
			if at := index(x, lanes); swept {
				lane := at % lanes
				masks[at/lanes*size+lane/8] |= 1 << (lane % 8)
			}
		}
		s.Swept[i] = pointer(masks)
	}
	s.carry = aligned[F](Rows * lanes)
	for i, v := range c.west {
		s.carry[i*lanes+lanes-1] = v
	}
	s.Carry = pointer(s.carry)
	s.acc = append(aligned[F](len(c.acc))[:0], c.acc...)
	s.Acc = pointer(s.acc)
	s.Break, s.AccNext = c.groupBreak, len(s.acc)/2*int(unsafe.Sizeof(F(0)))
	weights := aligned[F](2 * lanes)
	for lane := range lanes {
		weights[lane], weights[lanes+lane] = c.h, c.q
	}
	s.Weights = pointer(weights)
	return s
}

// check compares got with want, which is a function of the portable kernel.
func (c *spanCase[F]) check(t *testing.T, name string, got, want func(*Span)) {
	t.Helper()
	a, b := c.span(c.lanes), c.span(1)
	got(&a.Span)
	want(&b.Span)
	same := func(x, y F) bool { return math.Float64bits(float64(x)) == math.Float64bits(float64(y)) }
	for r := range c.rows {
		for x := range 4 * c.lanes * c.blocks {
			if got, want := a.dst[r][index(x, c.lanes)], b.dst[r][x]; !same(got, want) {
				t.Fatalf("%s: %d rows, %d blocks: row %d, column %d is %g, want %g", name, c.rows, c.blocks, r, x, got,
					want)
			}
		}
		if got, want := a.carry[(r+1)*c.lanes-1], b.carry[r]; !same(got, want) {
			t.Fatalf("%s: %d rows, %d blocks: row %d carries %g, want %g", name, c.rows, c.blocks, r, got, want)
		}
	}
	for g := range a.acc {
		if got, want := a.acc[g], b.acc[g]; !same(got, want) {
			t.Fatalf("%s: %d rows, %d blocks: group %d has %g, want %g", name, c.rows, c.blocks, g, got, want)
		}
	}
}
