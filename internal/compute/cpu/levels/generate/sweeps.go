package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"jacobi/internal/compute/cpu/operator"
)

// sweep writes the function for dst = u + w d: A is u, B the row above, C the row below, D the source; X, Y, Z are h,
// q, w. It fetches the row argAhead into the cache meanwhile.
func (g *generator) sweep(name string, source bool) {
	g.function(name)
	r := row{u: g.pointer(argA), dst: g.pointer(argDst)}
	north, south, ahead := g.pointer(argB), g.pointer(argC), g.pointer(argAhead)
	g.coefficients(source, &r)
	g.loop(func() {
		g.PREFETCHT1(g.at(ahead, 0))
		c := g.V[4]
		g.Mov(g.at(north, 0), g.V[6])
		g.Mov(g.at(r.u, 0), c)
		g.update(&r, c, g.V[6], g.at(south, 0))
	})
}

// pair writes the function that does sweep for two rows: A and E are u, B is the row above them, C the row below, D and
// F are the sources, dst and dst2 the results. It loads once for both rows what each of them needs of the other. It
// fetches the rows argAhead and argAhead2 into the cache meanwhile.
func (g *generator) pair(name string, source bool) {
	g.function(name)
	upper, lower := row{u: g.pointer(argA), dst: g.pointer(argDst)}, row{u: g.pointer(argE), dst: g.pointer(argDst2)}
	north, south := g.pointer(argB), g.pointer(argC)
	ahead, ahead2 := g.pointer(argAhead), g.pointer(argAhead2)
	g.coefficients(source, &upper)
	if source {
		lower.b = g.pointer(argF)
	}
	g.loop(func() {
		g.PREFETCHT1(g.at(ahead, 0))
		g.PREFETCHT1(g.at(ahead2, 0))
		c, d := g.V[4], g.V[5]
		g.Mov(g.at(north, 0), g.V[6])
		g.Mov(g.at(upper.u, 0), c)
		g.Mov(g.at(lower.u, 0), d)
		g.update(&upper, c, g.V[6], d)
		g.update(&lower, d, c, g.at(south, 0))
	})
}

// defects writes the function for dst = d: A is u, B the row above, C the row below, D the source; X, Y are h, q.
func (g *generator) defects(name string, source bool) {
	g.function(name)
	r := row{u: g.pointer(argA), dst: g.pointer(argDst)}
	north, south := g.pointer(argB), g.pointer(argC)
	g.coefficients(source, &r)
	g.loop(func() {
		g.Mov(g.at(north, 0), g.V[6])
		g.Mov(g.at(r.u, 0), g.V[4])
		g.defect(&r, g.V[4], g.V[6], g.at(south, 0), g.V[7])
		g.Mov(g.V[7], g.at(r.dst, 0))
	})
}

// row has the pointers to a row of u, of the source if there is one, and of the result.
type row struct{ u, b, dst reg.GPVirtual }

// coefficients loads h, q and w into v[0], v[1] and v[2], and the source of r, or else 0 into v[3].
func (g *generator) coefficients(source bool, r *row) {
	for k, arg := range []int{argX, argY, argZ} {
		g.constant(arg, g.V[k])
	}
	if source {
		r.b = g.pointer(argD)
	} else {
		g.zero(g.V[3])
	}
}

// update writes u + w d of row r, whose value is c, with the values above and below. It uses v[7] and v[8].
func (g *generator) update(r *row, c, north reg.VecPhysical, south operand.Op) {
	t := g.V[7]
	g.defect(r, c, north, south, t)
	g.FMA213(c, g.V[2], t)
	g.Mov(t, g.at(r.dst, 0))
}

// defect sets t to d of row r, whose value is c, with the values above and below. It uses v[8].
func (g *generator) defect(r *row, c, north reg.VecPhysical, south operand.Op, t reg.VecPhysical) {
	o, s := operator.New(g.Machine, g.V[0], g.V[1]), g.V[8]
	g.Mov(g.at(r.u, -1), s)
	o.Neighbours(g.at(r.u, 1), s, s)
	o.Neighbours(south, north, t)
	var b operand.Op = g.V[3]
	if r.b != nil {
		b = g.at(r.b, 0)
	}
	o.General(s, t, b)
	g.Sub(c, t, t)
}
