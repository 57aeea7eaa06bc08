package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"jacobi/solver/multigrid/aggregation"
)

// points writes the function for points with couplings of their own: dst = u + w d if it sweeps; d goes to dst2 if it
// sweeps and keeps d, and to dst if it does not sweep. A is u, B the row above, C the row below, D the source, and Z is
// w. The rows of couplings begin with argDiagonal. Points of float64 have no diagonal neighbours.
func (g *generator) points(name string, sweeps, keeps bool) {
	g.function(name)
	v := g.V[4:]
	bandOf := func(arg int) band {
		b := band{g.pointer(arg), v[0], v[1], v[2]}
		if g.Wide {
			v = v[3:]
		}
		return b
	}
	dst, u := g.pointer(argDst), bandOf(argA)
	north, south, east := band{base: g.pointer(argB)}, band{base: g.pointer(argC)}, bandOf(argEast)
	east.next = nil
	other, pointers := g.GP64(), map[int]reg.GPVirtual{}
	if g.Size == 8 {
		for _, arg := range []int{argD, argDiagonal, argNorth, argSouth} {
			pointers[arg] = g.pointer(arg)
		}
	}
	at := func(arg int) operand.Mem {
		p, ok := pointers[arg]
		if !ok { // too many rows for the registers
			p = other
			g.MOVQ(operand.Mem{Base: g.args, Disp: 8 * arg}, p)
		}
		return g.at(p, 0)
	}
	w, t, k, value := g.V[0], g.V[1], g.V[2], g.V[3]
	if sweeps {
		g.constant(argZ, w)
	}
	bands := []band{u, east}
	var northEast, northWest band
	if g.Size == 4 {
		north, south, northEast, northWest = bandOf(argB), bandOf(argC), bandOf(argNorthEast), bandOf(argNorthWest)
		northEast.prev, northWest.next = nil, nil
		bands = append(bands, north, south, northEast, northWest)
	}
	term := func(coupling operand.Op, b band, shift int) {
		r, ok := coupling.(reg.VecPhysical)
		if !ok {
			r = k
			g.Mov(coupling, r)
		}
		g.FMA231(g.beside(b, shift, value), r, t)
	}
	straight := func(b band) operand.Op { // above and below
		if g.Size == 4 {
			return g.beside(b, 0, value)
		}
		return g.at(b.base, 0)
	}
	g.loopOver(func() { g.begin(bands...) }, func() {
		if keeps {
			for _, values := range []operand.Mem{g.at(south.base, 0), g.at(east.base, 0), at(argD), at(argDiagonal),
				at(argSouth)} {
				g.ahead(values)
			}
		}
		g.turn(bands...)
		g.Mov(at(argD), t)
		if g.Size == 4 {
			term(at(argSouthEast), south, 1)
			term(at(argSouthWest), south, -1)
			term(g.beside(northEast, 1, k), north, 1)
			term(g.beside(northWest, -1, k), north, -1)
		}
		for _, vertical := range []struct {
			coupling int
			row      band
		}{{argSouth, south}, {argNorth, north}} {
			g.Mov(at(vertical.coupling), k)
			g.FMA231(straight(vertical.row), k, t)
		}
		term(g.beside(east, 0, k), u, 1)
		term(g.beside(east, -1, k), u, -1)
		c := g.beside(u, 0, nil)
		if !g.Wide {
			g.Mov(c, value)
			c = value
		}
		g.Mov(at(argDiagonal), k)
		if g.Size == 4 {
			g.VFNMADD231PS(c, k, t)
		} else {
			g.VFMSUB213PD(c, k, t)
		}
		if keeps {
			g.Mov(t, at(argDst2))
		}
		if sweeps {
			g.FMA213(c, w, t)
		}
		g.Mov(t, g.at(dst, 0))
		g.pass(bands...)
	})
}

// pointProducts writes the function of CG.multiplyPoints, for whole vectors: u, x and p are A to C, D to F and the
// rows from argP on, each with the rows above and below; argAhead is the source of x. For each group of four columns
// it adds two sums to two equal pairs of values, in each of dst, dst2 and argAhead2.
func (g *generator) pointProducts() {
	g.function("pointProducts")
	type rows struct{ centre, north, south reg.GPVirtual }
	u := rows{g.pointer(argA), g.pointer(argB), g.pointer(argC)}
	x := rows{g.pointer(argD), g.pointer(argE), g.pointer(argF)}
	p, east := g.pointer(argP), g.pointer(argEast)
	other := g.GP64()
	at := func(arg int) operand.Mem { // too many rows for the registers
		g.MOVQ(operand.Mem{Base: g.args, Disp: 8 * arg}, other)
		return g.at(other, 0)
	}
	d, k, left, right := [3]reg.VecPhysical{g.V[0], g.V[1], g.V[2]}, g.V[3], g.V[4], g.V[5]
	v := [3]reg.VecPhysical{g.V[6], g.V[7], g.V[8]}
	term := func(coupling, u, x operand.Mem, p func() operand.Mem) {
		g.Mov(coupling, k)
		g.Mov(x, right)
		g.Mov(u, left)
		g.Sub(right, left, left)
		g.VFMADD231PD(left, k, d[0])
		g.VFMADD231PD(p(), k, d[1])
		g.VFMADD231PD(right, k, d[2])
	}
	odd := operand.U8(0xf)
	if g.Wide {
		odd = operand.U8(0xff)
	}
	// product sets r to the sum of the products of the first two and, 2 lanes on, of the last two values of a group.
	product := func(d, oddD, v, oddV, r reg.VecPhysical) {
		g.Mul(d, v, r)
		g.VFMADD231PD(oddD, oddV, r)
	}
	sums := func(a, b reg.VecPhysical, arg int) {
		g.VUNPCKLPD(b, a, a)
		g.VPERMPD(operand.U8(0x4e), a, b)
		g.Add(b, a, a)
		to := at(arg)
		g.Add(to, a, a)
		g.Mov(a, to)
	}
	g.loopOver(func() {}, func() {
		for _, values := range []operand.Mem{g.at(u.south, 0), g.at(x.south, 0)} {
			g.ahead(values)
		}
		for _, arg := range []int{argPSouth, argAhead, argDiagonal, argEast, argSouth, argCentre} {
			g.ahead(at(arg))
		}
		g.zero(d[0])
		g.zero(d[1])
		g.Mov(at(argAhead), d[2])
		term(at(argSouth), g.at(u.south, 0), g.at(x.south, 0), func() operand.Mem { return at(argPSouth) })
		term(at(argNorth), g.at(u.north, 0), g.at(x.north, 0), func() operand.Mem { return at(argPNorth) })
		for _, shift := range []int{1, -1} {
			term(g.at(east, min(shift, 0)), g.at(u.centre, shift), g.at(x.centre, shift),
				func() operand.Mem { return g.at(p, shift) })
		}
		g.Mov(g.at(x.centre, 0), v[2])
		g.Mov(g.at(u.centre, 0), v[0])
		g.Sub(v[2], v[0], v[0])
		g.Mov(g.at(p, 0), v[1])
		g.Mov(at(argDiagonal), left)
		g.Mov(at(argCentre), right)
		for i, t := range d {
			g.VFMSUB213PD(v[i], left, t)
			g.Mul(right, t, t)
		}
		odds := []reg.VecPhysical{g.V[9], g.V[10], g.V[11], g.V[12], g.V[13]}
		for i, w := range []reg.VecPhysical{v[0], v[1], d[0], d[1], d[2]} {
			g.VPERMILPD(odd, w, odds[i])
		}
		zz, zp, pp, zx := g.V[3], g.V[4], g.V[5], g.V[8]
		product(d[0], odds[2], v[0], odds[0], zz)
		product(d[1], odds[3], v[0], odds[0], zp)
		sums(zz, zp, argDst)
		product(d[1], odds[3], v[1], odds[1], pp)
		product(d[2], odds[4], v[0], odds[0], zx)
		sums(pp, zx, argDst2)
		px := g.V[3]
		product(d[2], odds[4], v[1], odds[1], px)
		g.Mov(px, g.V[4])
		sums(px, g.V[4], argAhead2)
	})
}

// residuals writes the function of residuals: A is u, B the row above, C the row below and D the source.
func (g *generator) residuals() {
	g.function("residuals")
	dst, u, north, south := g.pointer(argDst), g.pointer(argA), g.pointer(argB), g.pointer(argC)
	b, centre, east := g.pointer(argD), g.pointer(argCentre), g.pointer(argEast)
	above0, below := g.pointer(argNorth), g.pointer(argSouth)
	v, sum, column, t, k, c := g.V[0], g.V[1], g.V[2], g.V[3], g.V[4], g.V[5]
	zero, least := g.V[6], g.V[7]
	term := func(coupling, neighbour operand.Mem, t reg.VecPhysical) {
		g.Mov(neighbour, t)
		g.Sub(v, t, t)
		g.Mul(coupling, t, t)
	}
	g.loopOver(func() {
		g.zero(zero)
		g.bits(math.Float64bits(aggregation.Rounding), least)
	}, func() {
		g.Mov(g.at(u, 0), v)
		term(g.at(east, -1), g.at(u, -1), sum)
		term(g.at(east, 0), g.at(u, 1), t)
		g.Add(t, sum, sum)
		term(g.at(above0, 0), g.at(north, 0), column)
		term(g.at(below, 0), g.at(south, 0), t)
		g.Add(t, column, column)
		g.Add(column, sum, sum)
		g.Add(g.at(b, 0), sum, sum)
		g.Mov(g.at(east, -1), k) // aggregation.Screening
		g.Add(g.at(east, 0), k, k)
		g.Mov(g.at(above0, 0), t)
		g.Add(g.at(below, 0), t, t)
		g.Add(t, k, k)
		g.Mov(g.at(centre, 0), c)
		g.Sub(k, c, k)
		g.Mul(least, c, t)
		g.VCMPPD(above, t, k, t)
		g.VANDPD(t, k, k)
		g.Mul(v, k, k)
		g.Sub(k, sum, sum)
		g.VCMPPD(above, zero, c, c)
		g.VANDPD(c, sum, sum)
		g.Mov(sum, g.at(dst, 0))
	})
}

// multiply writes the function for dst = a b.
func (g *generator) multiply() {
	g.function("multiply")
	dst, a, b := g.pointer(argDst), g.pointer(argA), g.pointer(argB)
	g.loop(func() {
		g.Mov(g.at(a, 0), g.V[0])
		g.Mul(g.at(b, 0), g.V[0], g.V[0])
		g.Mov(g.V[0], g.at(dst, 0))
	})
}

// spread writes the function of spreadOne or spreadTwo: dst is a row of twice as many values, A and D are the coarse
// rows, argDiagonal, argEast and argNorth the weights on, before and behind for A, and the next three those for D.
func (g *generator) spread(name string, two bool) {
	g.function(name)
	dst, rows := g.pointer(argDst), []reg.GPVirtual{g.pointer(argA)}
	weights := []reg.GPVirtual{g.pointer(argDiagonal), g.pointer(argEast), g.pointer(argNorth)}
	if two {
		rows = append(rows, g.pointer(argD))
		weights = append(weights, g.pointer(argSouth), g.pointer(argSouthEast), g.pointer(argSouthWest))
	}
	on, between, v, low := g.V[0], g.V[1], g.V[2], g.V[3]
	g.loop(func() {
		for k, u := range rows {
			g.Mov(g.at(u, 0), v)
			if k == 0 {
				g.Mul(g.at(weights[0], 0), v, on)
				g.Mul(g.at(weights[2], 0), v, between)
			} else {
				g.VFMADD231PS(g.at(weights[3], 0), v, on)
				g.VFMADD231PS(g.at(weights[5], 0), v, between)
			}
			g.Mov(g.at(u, 1), v)
			g.VFMADD231PS(g.at(weights[3*k+1], 1), v, between)
		}
		g.VUNPCKLPS(between, on, low)
		g.VUNPCKHPS(between, on, v)
		g.VPERM2F128(operand.U8(0x20), v, low, on)
		g.VPERM2F128(operand.U8(0x31), v, low, between)
		g.VMOVUPS(on, operand.Mem{Base: dst, Index: g.i, Scale: 8})
		g.VMOVUPS(between, operand.Mem{Base: dst, Index: g.i, Scale: 8, Disp: g.Bytes()})
	})
}

// collect writes the function of halves.collect: A is a row of twice as many values; argDiagonal, argEast and argNorth
// are the weights on, before and behind. n is a multiple of a vector.
func (g *generator) collect() {
	g.function("collect")
	dst, d := g.pointer(argDst), g.pointer(argA)
	on, before, behind := g.pointer(argDiagonal), g.pointer(argEast), g.pointer(argNorth)
	sum, low, high, t := g.V[0], g.V[1], g.V[2], g.V[3]
	pairs := func(shift int) {
		g.VMOVUPS(operand.Mem{Base: d, Index: g.i, Scale: 8, Disp: 4 * shift}, low)
		g.VMOVUPS(operand.Mem{Base: d, Index: g.i, Scale: 8, Disp: 4*shift + g.Bytes()}, high)
	}
	pick := func(odd bool, weights reg.GPVirtual) {
		lanes := operand.U8(0x88)
		if odd {
			lanes = 0xdd
		}
		g.VSHUFPS(lanes, high, low, t)
		g.VPERMPD(operand.U8(0xd8), t, t)
		g.VFMADD231PS(g.at(weights, 0), t, sum)
	}
	g.loop(func() {
		g.Mov(g.at(dst, 0), sum)
		pairs(-2)
		pick(true, before)
		pairs(0)
		pick(false, on)
		pick(true, behind)
		g.Mov(sum, g.at(dst, 0))
	})
}
