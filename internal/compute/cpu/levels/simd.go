package levels

import (
	"fmt"
	"math"
	"unsafe"

	"jacobi/internal/compute/cpu/kernel"
)

//go:generate go run ./generate -isa avx512 -pkg levels -out avx512_amd64.s
//go:generate go run ./generate -isa avx2 -pkg levels -out avx2_amd64.s

// rowArgs are the arguments of a function for rows. Their order is that of generate/generator.go. The rows of a call do
// not overlap, except that dst may be added to.
type rowArgs struct {
	dst, a, b, c, d, e, f unsafe.Pointer
	n                     int
	x, y, z               uint64 // constants: bits of a float64, or of a float32 in the lowest bytes
	ahead, dst2, ahead2   unsafe.Pointer
	rows                  [17]unsafe.Pointer // of couplings, of weights or of what sets them up
}

// functions work through rows of one type of value, at least lanes of them.
type functions struct {
	lanes                                       int
	sweepSource, pairSource, defectsSource, add func(*rowArgs)
	sweepPoints, defectPoints                   func(*rowArgs)

	// of float32 alone
	scale, addScaled, blend, gather, between, spreadOne, spreadTwo, collect func(*rowArgs)

	// of float64 alone
	sweep, pair, defects                                             func(*rowArgs) // without a source
	squares, narrow, subtract, products, step                        func(*rowArgs)
	sweepKeepPoints, multiply, pointProducts, excess, roots, scaling func(*rowArgs)
	interpolateAlong, interpolateAcross, interpolateBoth             func(*rowArgs)
	split, timesPOwn, timesPBeside, timesPStraight, addAP            func(*rowArgs)
	residuals                                                        func(*rowArgs)

	shorter *functions // for rows of fewer values; nil for plain Go
}

// engine calls the functions of an instruction set for one thread. f32 and f64 are nil for plain Go.
type engine struct {
	args     rowArgs
	tail     [pad]float32 // of halves.collect
	f32, f64 *functions
}

// newEngine returns an engine for one of kernel.Names.
func newEngine(name string) (engine, error) {
	if name == "portable" {
		return engine{}, nil
	}
	f32, f64 := functionsOf(name)
	if f32 == nil {
		return engine{}, fmt.Errorf("cpu levels: no functions for kernel %q", name)
	}
	return engine{f32: f32, f64: f64}, nil
}

// take returns the arguments of a function for n values, of up to two rows and one constant.
func (e *engine) take(dst, a, b unsafe.Pointer, n int, x uint64) *rowArgs {
	r := &e.args
	r.dst, r.a, r.b, r.n, r.x = dst, a, b, n, x
	return r
}

// of returns the functions for rows of n values of type F, or nil if plain Go has to do them.
func of[F float](e *engine, n int) *functions {
	f := e.f32
	if unsafe.Sizeof(F(0)) == 8 {
		f = e.f64
	}
	for f != nil && n < f.lanes {
		f = f.shorter
	}
	return f
}

// address returns the address of value x of a row.
func address[V float | int32](row []V, x int) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(row)), x*int(unsafe.Sizeof(row[0])))
}

func bitsOf[F float](v F) uint64 {
	if unsafe.Sizeof(v) == 4 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(float64(v))
}

// load sets the arguments for the columns of s between lo and hi.
func load[F float](e *engine, dst []F, s *stencil[F], w F, lo, hi int) {
	a := &e.args
	a.dst, a.a, a.b, a.c = address(dst, lo), address(s.centre, lo), address(s.north, lo), address(s.south, lo)
	if s.b != nil {
		a.d = address(s.b, lo)
	}
	a.n, a.x, a.y, a.z, a.ahead = hi-lo, bitsOf(s.h), bitsOf(s.q), bitsOf(w), s.next(dst, lo)
}

// next returns the address of column x of the row ahead. If there is none it is that of dst, whose fetch does no harm.
func (s *stencil[F]) next(dst []F, x int) unsafe.Pointer {
	if s.ahead != nil {
		dst = s.ahead
	}
	return address(dst, x)
}

// sweep writes u + w d of the swept columns to dst.
func sweep[F float](e *engine, dst []F, s *stencil[F], w F) {
	if s.points != nil {
		sweepPoints(e, dst, s, w)
		return
	}
	lo, hi := s.inner()
	if f := of[F](e, hi-lo); f != nil {
		load(e, dst, s, w, lo, hi)
		if s.b != nil {
			f.sweepSource(&e.args)
		} else {
			f.sweep(&e.args)
		}
	} else {
		c := s.centre
		for x := lo; x < hi; x++ {
			dst[x] = kernel.FMA(w, s.defect(x, c[x-1], c[x+1]), c[x])
		}
	}
	s.sweepMirrored(dst, w)
}

// sweepMirrored is sweep for the columns on Neumann walls.
func (s *stencil[F]) sweepMirrored(dst []F, w F) {
	s.mirrored(func(x, inner int) {
		dst[x] = kernel.FMA(w, s.defect(x, s.centre[inner], s.centre[inner]), s.centre[x])
	})
}

// sweepPair does sweep for two rows. The second one is south of the first one, and they have the same columns and
// coefficients.
func sweepPair[F float](e *engine, dst [2][]F, s *[2]stencil[F], w F) {
	lo, hi := s[0].inner()
	f := of[F](e, hi-lo)
	if s[0].points != nil || f == nil {
		sweep(e, dst[0], &s[0], w)
		sweep(e, dst[1], &s[1], w)
		return
	}
	load(e, dst[0], &s[0], w, lo, hi)
	a := &e.args
	a.c, a.e, a.dst2 = address(s[1].south, lo), address(s[1].centre, lo), address(dst[1], lo)
	a.ahead2 = s[1].next(dst[1], lo)
	if s[1].b != nil {
		a.f = address(s[1].b, lo)
		f.pairSource(a)
	} else {
		f.pair(a)
	}
	s[0].sweepMirrored(dst[0], w)
	s[1].sweepMirrored(dst[1], w)
}

// defects writes d of the swept columns to dst.
func defects[F float](e *engine, dst []F, s *stencil[F]) {
	if s.points != nil {
		defectPoints(e, dst, s)
		return
	}
	lo, hi := s.inner()
	if f := of[F](e, hi-lo); f != nil {
		load(e, dst, s, 0, lo, hi)
		if s.b != nil {
			f.defectsSource(&e.args)
		} else {
			f.defects(&e.args)
		}
	} else {
		c := s.centre
		for x := lo; x < hi; x++ {
			dst[x] = s.defect(x, c[x-1], c[x+1])
		}
	}
	s.mirrored(func(x, inner int) { dst[x] = s.defect(x, s.centre[inner], s.centre[inner]) })
}

// mirrored calls do for the swept columns on Neumann walls, with the column that both their neighbours are.
func (s *stencil[F]) mirrored(do func(x, inner int)) {
	if s.mirrorLeft {
		do(0, 1)
	}
	if s.mirrorRight {
		do(s.hi-1, s.hi-2)
	}
}

// narrow writes scale*d to dst, for columns [lo, hi).
func narrow(e *engine, dst []float32, d []float64, scale float64, lo, hi int) {
	if f := of[float64](e, hi-lo); f != nil {
		f.narrow(e.take(address(dst, lo), address(d, lo), nil, hi-lo, bitsOf(scale)))
		return
	}
	for x := lo; x < hi; x++ {
		dst[x] = float32(scale * d[x])
	}
}

// add writes u + scale*e to dst, for columns [lo, hi). Scale is 1 for float32.
func add[F float](e *engine, dst, u []F, correction []float32, scale F, lo, hi int) {
	if f := of[F](e, hi-lo); f != nil {
		f.add(e.take(address(dst, lo), address(u, lo), address(correction, lo), hi-lo, bitsOf(scale)))
		return
	}
	for x := lo; x < hi; x++ {
		dst[x] = kernel.FMA(scale, F(correction[x]), u[x])
	}
}

// squares adds the squares of groups of four columns to acc, a value for each group, or four equal ones if there are
// functions for it (see groups). d has a multiple of 32 values, 0 where nothing is swept.
func squares(e *engine, acc, d []float64) {
	const least = 0x1p-1022
	if f := of[float64](e, len(d)); f != nil {
		f.squares(e.take(address(acc, 0), address(d, 0), nil, len(d), bitsOf(least)))
		return
	}
	for g := range len(d) / 4 {
		v := d[4*g : 4*g+4 : 4*g+4]
		acc[g] += math.FMA(v[1], v[1], math.FMA(v[0], v[0], least)) + math.FMA(v[3], v[3], math.FMA(v[2], v[2], least))
	}
}

// groups returns the sums of the groups in acc, which it may overwrite.
func groups(e *engine, acc []float64) []float64 {
	n := len(acc) / 4
	if of[float64](e, len(acc)) != nil {
		for g := range n {
			acc[g] = acc[4*g]
		}
	}
	return acc[:n]
}

// gather restricts a row of column sums t to dst.
func (c *columns) gather(e *engine, dst, t []float32, gain float32) {
	lo, hi := c.lo, c.hi
	if f := of[float32](e, hi-lo); f != nil {
		a := e.take(address(dst, lo), address(t, 0), address(c.first, lo), hi-lo, bitsOf(gain))
		a.c, a.d, a.e, a.f = address(c.taps[0], lo), address(c.taps[1], lo), address(c.taps[2], lo), address(c.taps[3],
			lo)
		f.gather(a)
		return
	}
	w0, w1, w2, w3 := c.taps[0], c.taps[1], c.taps[2], c.taps[3]
	for x := lo; x < hi; x++ {
		at := int(c.first[x])
		v := t[at : at+4 : at+4]
		r := kernel.FMA(w3[x], v[3], kernel.FMA(w2[x], v[2], kernel.FMA(w1[x], v[1], w0[x]*v[0])))
		dst[x] = kernel.FMA(gain, r, 0)
	}
}

// between writes the values of fine columns [lo, hi) that lie between those of t, a row of coarse columns, to dst.
func (c *columns) between(e *engine, dst, t []float32, lo, hi int) {
	if f := of[float32](e, hi-lo); f != nil {
		a := e.take(address(dst, lo), address(t, 0), address(c.coarse, lo), hi-lo, 0)
		a.c = address(c.weight, lo)
		f.between(a)
		return
	}
	for x := lo; x < hi; x++ {
		at := int(c.coarse[x])
		dst[x] = kernel.FMA(c.weight[x], t[at+1]-t[at], t[at])
	}
}

// blend writes north + w (south - north) to dst.
func blend(e *engine, dst, north, south []float32, w float32) {
	if f := of[float32](e, len(dst)); f != nil {
		f.blend(e.take(address(dst, 0), address(north, 0), address(south, 0), len(dst), bitsOf(w)))
		return
	}
	for x := range dst {
		dst[x] = kernel.FMA(w, south[x]-north[x], north[x])
	}
}

// weigh adds w*d to dst, or sets dst to it. Both rows have zeros up to a multiple of pad.
func weigh(e *engine, dst, d []float32, w float32, set bool) {
	if f := of[float32](e, len(dst)); f != nil {
		a := e.take(address(dst, 0), address(d, 0), nil, (len(dst)+pad-1)/pad*pad, bitsOf(w))
		if set {
			f.scale(a)
		} else {
			f.addScaled(a)
		}
		return
	}
	for x := range dst {
		if set {
			dst[x] = w * d[x]
		} else {
			dst[x] = kernel.FMA(w, d[x], dst[x])
		}
	}
}

// subtract writes a - b to dst.
func subtract(e *engine, dst, a, b []float64) {
	if f := of[float64](e, len(a)); f != nil {
		f.subtract(e.take(address(dst, 0), address(a, 0), address(b, 0), len(a), 0))
		return
	}
	for x := range a {
		dst[x] = a[x] - b[x]
	}
}

// products adds the products of groups of four columns to acc, as squares does. a and d have a multiple of 8 values.
func products(e *engine, acc, a, d []float64) {
	if f := of[float64](e, len(d)); f != nil {
		f.products(e.take(address(acc, 0), address(a, 0), address(d, 0), len(d), 0))
		return
	}
	for g := range len(d) / 4 {
		v, w := a[4*g:4*g+4:4*g+4], d[4*g:4*g+4:4*g+4]
		acc[g] += math.FMA(w[1], v[1], w[0]*v[0]) + math.FMA(w[3], v[3], w[2]*v[2])
	}
}

// step sets p = fma(a, u - x, b p) and then u = x + p.
func step(e *engine, u, p, x []float64, a, b float64) {
	if f := of[float64](e, len(u)); f != nil {
		r := e.take(address(u, 0), address(p, 0), address(x, 0), len(u)/f.lanes*f.lanes, bitsOf(a))
		r.y = bitsOf(b)
		f.step(r)
		u, p, x = u[r.n:], p[r.n:], x[r.n:]
	}
	for i := range u {
		p[i] = math.FMA(a, u[i]-x[i], b*p[i])
		u[i] = x[i] + p[i]
	}
}
