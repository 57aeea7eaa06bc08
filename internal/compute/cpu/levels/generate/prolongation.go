package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The rows of the functions for P, from argRows on: C of the row, of that above and of that below; the couplings to
// the east, of the row above to the south, to the south, of the row above to the south-east and the south-west, to
// the south-west and the south-east; ones in all bits of columns between coarse ones; P of the rows above and below,
// each to the column before and to the one behind; and P for the coarse row below. Until P of the rows above and below
// are read, excesses take their places: of the row above, of the row and of that below.
const (
	rowC = iota
	rowNorthC
	rowSouthC
	rowE
	rowNorthS
	rowS
	rowNorthSE
	rowNorthSW
	rowSW
	rowSE
	rowBetween
	rowAbove
	rowAbove1
	rowBelow
	rowBelow1
	rowTo
	rowTo1

	rowNorthExcess = rowAbove
	rowExcess      = rowAbove1
	rowSouthExcess = rowBelow
)

// The predicates of comparisons.
const (
	notEqual = operand.U8(4)
	above    = operand.U8(14)
)

// sum sets t to the sum of rows, each with a shift: the first two and then each further one.
func (g *generator) sum(t reg.VecPhysical, rows ...[2]int) {
	g.Mov(g.row(rows[0][0], rows[0][1]), t)
	for _, r := range rows[1:] {
		g.Add(g.row(r[0], r[1]), t, t)
	}
}

// magnitude clears the sign of t.
func (g *generator) magnitude(t, s reg.VecPhysical) {
	g.bits(1<<63-1, s)
	g.VANDPD(s, t, t)
}

// bits spreads a constant.
func (g *generator) bits(v uint64, t reg.VecPhysical) {
	r := g.GP64()
	g.MOVQ(operand.Imm(v), r)
	g.VMOVQ(r, t.AsX())
	g.VPBROADCASTQ(t.AsX(), t)
}

// positive sets t to ones in all bits where a row is above 0. It uses s.
func (g *generator) positive(row, shift int, t, s reg.VecPhysical) {
	g.zero(s)
	g.Mov(g.row(row, shift), t)
	g.VCMPPD(above, s, t, t)
}

// excess writes the function of prolongation.excess.
func (g *generator) excess() {
	g.function("excess")
	dst := g.pointer(argDst)
	s, r, t := g.V[0], g.V[1], g.V[2]
	g.loopOver(func() {}, func() {
		g.sum(s, [2]int{rowE, -1}, [2]int{rowE, 0})
		g.sum(r, [2]int{rowNorthS, 0}, [2]int{rowS, 0})
		g.Add(r, s, s)
		g.sum(r, [2]int{rowNorthSE, -1}, [2]int{rowNorthSW, 1})
		g.sum(t, [2]int{rowSW, 0}, [2]int{rowSE, 0})
		g.Add(t, r, r)
		g.Add(r, s, s)
		g.Mov(g.row(rowC, 0), r)
		g.Sub(s, r, s)
		g.zero(r)
		g.VMAXPD(r, s, s)
		g.Mov(s, g.at(dst, 0))
	})
}

// total sets t to the sum of a, b and prolongation's beyond of excesses, and valid to ones in all bits where that can
// be divided by and C is above 0. The excesses are those of the point and of its neighbours before and after. It uses s
// and r.
func (g *generator) total(t, valid, a, b, s, r reg.VecPhysical, own, before, after [2]int) {
	g.Mov(g.row(before[0], before[1]), s)
	g.VMINPD(g.row(after[0], after[1]), s, s)
	g.Mov(g.row(own[0], own[1]), r)
	g.Sub(s, r, s)
	g.zero(r)
	g.VMAXPD(r, s, s)
	g.Add(b, a, t)
	g.Add(s, t, t)
	g.VCMPPD(notEqual, r, t, s)
	g.positive(rowC, 0, valid, r)
	g.VANDPD(s, valid, valid)
}

// share divides v by a total where that is valid and the neighbour, whose C is in row c, is an unknown; elsewhere v
// becomes 0. It uses s and r.
func (g *generator) share(v, total, valid reg.VecPhysical, c, shift int, s, r reg.VecPhysical) {
	g.VDIVPD(total, v, v)
	g.VANDPD(valid, v, v)
	g.positive(c, shift, s, r)
	g.VANDPD(s, v, v)
}

// interpolateAlong writes the function of prolongation.onRow: P to the column before goes to dst, that to the one
// behind to dst2.
func (g *generator) interpolateAlong() {
	g.function("interpolateAlong")
	dst, dst2 := g.pointer(argDst), g.pointer(argDst2)
	left, right, total, valid, s, r := g.V[0], g.V[1], g.V[2], g.V[3], g.V[4], g.V[5]
	g.loopOver(func() {}, func() {
		g.sum(left, [2]int{rowNorthSE, -1}, [2]int{rowE, -1}, [2]int{rowSW, 0})
		g.magnitude(left, s)
		g.sum(right, [2]int{rowNorthSW, 1}, [2]int{rowE, 0}, [2]int{rowSE, 0})
		g.magnitude(right, s)
		g.total(total, valid, left, right, s, r, [2]int{rowExcess, 0}, [2]int{rowExcess, -1}, [2]int{rowExcess, 1})
		for i, v := range []reg.VecPhysical{left, right} {
			g.share(v, total, valid, rowC, 2*i-1, s, r)
			g.VANDPD(g.row(rowBetween, 0), v, v)
		}
		g.positive(rowC, 0, s, r) // 1 on coarse columns
		g.bits(math.Float64bits(1), r)
		g.VANDPD(s, r, r)
		g.Mov(g.row(rowBetween, 0), s)
		g.VANDNPD(r, s, r)
		g.VORPD(r, left, left)
		g.Mov(left, g.at(dst, 0))
		g.Mov(right, g.at(dst2, 0))
	})
}

// interpolateAcross writes the function for the points on coarse columns in prolongation.betweenRows: P to the row
// above goes to dst, that to the one below to rowTo. Both are 0 in other columns.
func (g *generator) interpolateAcross() {
	g.function("interpolateAcross")
	dst := g.pointer(argDst)
	north, south, total, valid, s, r := g.V[0], g.V[1], g.V[2], g.V[3], g.V[4], g.V[5]
	g.loopOver(func() {}, func() {
		g.sum(north, [2]int{rowNorthSE, -1}, [2]int{rowNorthS, 0}, [2]int{rowNorthSW, 1})
		g.magnitude(north, s)
		g.sum(south, [2]int{rowSW, 0}, [2]int{rowS, 0}, [2]int{rowSE, 0})
		g.magnitude(south, s)
		g.total(total, valid, north, south, s, r, [2]int{rowExcess, 0}, [2]int{rowNorthExcess, 0},
			[2]int{rowSouthExcess, 0})
		for i, v := range []reg.VecPhysical{north, south} {
			g.share(v, total, valid, rowNorthC+i, 0, s, r)
			g.Mov(g.row(rowBetween, 0), s)
			g.VANDNPD(v, s, v)
		}
		g.Mov(north, g.at(dst, 0))
		g.Mov(south, g.row(rowTo, 0))
	})
}

// interpolateBoth writes the function for the points between coarse columns in prolongation.betweenRows, for which
// interpolateAcross has done the others.
func (g *generator) interpolateBoth() {
	g.function("interpolateBoth")
	dst, dst2 := g.pointer(argDst), g.pointer(argDst2)
	v, k, s, r, between := g.V[0], g.V[1], g.V[2], g.V[3], g.V[4]
	corner := func(vertical, p int, diagonal [2]int, horizontal, neighbour operand.Mem, c [2]int, to operand.Mem) {
		g.Mov(g.row(vertical, 0), k)
		g.Mov(g.row(diagonal[0], diagonal[1]), v)
		g.VFMADD231PD(g.row(p, 0), k, v)
		g.Mov(horizontal, k)
		g.VFMADD231PD(neighbour, k, v)
		g.VDIVPD(g.row(rowC, 0), v, v)
		g.positive(c[0], c[1], s, r)
		g.VANDPD(s, v, v)
		g.positive(rowC, 0, s, r)
		g.VANDPD(s, v, v)
		g.Mov(g.row(rowBetween, 0), between)
		g.VANDPD(between, v, v)
		g.VANDNPD(to, between, k)
		g.VORPD(k, v, v)
		g.Mov(v, to)
	}
	g.loopOver(func() {}, func() {
		corner(rowNorthS, rowAbove, [2]int{rowNorthSE, -1}, g.row(rowE, -1), g.at(dst, -1), [2]int{rowNorthC, -1},
			g.at(dst, 0))
		corner(rowNorthS, rowAbove1, [2]int{rowNorthSW, 1}, g.row(rowE, 0), g.at(dst, 1), [2]int{rowNorthC, 1},
			g.at(dst2, 0))
		corner(rowS, rowBelow, [2]int{rowSW, 0}, g.row(rowE, -1), g.row(rowTo, -1), [2]int{rowSouthC, -1},
			g.row(rowTo, 0))
		corner(rowS, rowBelow1, [2]int{rowSE, 0}, g.row(rowE, 0), g.row(rowTo, 1), [2]int{rowSouthC, 1},
			g.row(rowTo1, 0))
	})
}

// roots writes the function of scaler.root: dst is 1/sqrt(C).
func (g *generator) roots() {
	g.function("roots")
	dst := g.pointer(argDst)
	valid, root, one := g.V[0], g.V[1], g.V[2]
	g.loopOver(func() {}, func() {
		g.positive(rowC, 0, valid, one)
		g.VSQRTPD(g.row(rowC, 0), root)
		g.bits(math.Float64bits(1), one)
		g.VDIVPD(root, one, root)
		g.VANDPD(valid, root, root)
		g.Mov(root, g.at(dst, 0))
	})
}

// scaling writes the function of scaler.scale: dst is g and dst2 is h. Rows from rowAbove on are 1/sqrt(C) of the
// row, of that above and of that below.
func (g *generator) scaling() {
	g.function("scaling")
	const own, north, south = rowAbove, rowAbove1, rowBelow
	dst, dst2 := g.pointer(argDst), g.pointer(argDst2)
	sum, root, k, t, sign, one := g.V[0], g.V[1], g.V[2], g.V[3], g.V[4], g.V[5]
	g.loopOver(func() {}, func() {
		g.zero(sum)
		g.bits(1<<63-1, sign)
		g.Mov(g.row(own, 0), root)
		for _, c := range []struct{ row, shift, neighbour, at int }{{rowE, -1, own, -1}, {rowE, 0, own, 1},
			{rowNorthS, 0, north, 0}, {rowS, 0, south, 0}, {rowNorthSE, -1, north, -1}, {rowNorthSW, 1, north, 1},
			{rowSW, 0, south, -1}, {rowSE, 0, south, 1}} {
			g.Mul(g.row(c.neighbour, c.at), root, t)
			g.VANDPD(g.row(c.row, c.shift), sign, k)
			g.VFMADD231PD(t, k, sum)
		}
		g.bits(math.Float64bits(1), one)
		g.VMAXPD(one, sum, sum)
		g.Mul(g.row(rowC, 0), sum, sum)
		g.VSQRTPD(sum, sum)
		g.positive(rowC, 0, k, t)
		g.VDIVPD(sum, one, t)
		g.VANDPD(k, t, t)
		g.Mov(t, g.at(dst, 0))
		g.VANDPD(k, sum, sum)
		g.Mov(sum, g.at(dst2, 0))
	})
}
