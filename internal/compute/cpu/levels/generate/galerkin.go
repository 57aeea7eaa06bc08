package main

import (
	"github.com/mmcloughlin/avo/operand"
)

// row returns the values of one of the rows from argRows on at the present index, shifted by a number of values. Its
// address is loaded for each use, as there are too many rows for the registers.
func (g *generator) row(i, shift int) operand.Mem {
	p := g.GP64()
	g.MOVQ(operand.Mem{Base: g.args, Disp: 8 * (argRows + i)}, p)
	return g.at(p, shift)
}

// split writes the function that writes every other value of A to dst, and those between them to dst2.
func (g *generator) split() {
	g.function("split")
	on, between, a := g.pointer(argDst), g.pointer(argDst2), g.pointer(argA)
	first, second, low, high := g.V[0], g.V[1], g.V[2], g.V[3]
	g.loopOver(func() {}, func() {
		twice := g.GP64()
		g.LEAQ(operand.Mem{Base: g.i, Index: g.i, Scale: 1}, twice)
		g.Mov(operand.Mem{Base: a, Index: twice, Scale: 8}, first)
		g.Mov(operand.Mem{Base: a, Index: twice, Scale: 8, Disp: g.Bytes()}, second)
		g.VUNPCKLPD(second, first, low)
		g.VUNPCKHPD(second, first, high)
		g.VPERMPD(operand.U8(0xd8), low, low)
		g.VPERMPD(operand.U8(0xd8), high, high)
		g.Mov(low, g.at(on, 0))
		g.Mov(high, g.at(between, 0))
	})
}

// timesP writes the function of columnSplit.timesP for a row of points q: its own or one beside it, with diagonal
// couplings or without. The rows are those couplings of points on coarse columns to the west, to the same column and to
// the east, those of points between; P of the points on coarse columns, P of those between to the column before and to
// the one behind; and AP of points on coarse columns for the one before, their own and the one behind, and of points
// between for the one before and the one behind.
func (g *generator) timesP(name string, own, diagonals bool) {
	g.function(name)
	const west, centre, east, between, p0, p0Between, p1Between, ap = 0, 1, 2, 3, 6, 7, 8, 9
	sums := g.V[:5]
	add := func(sum int, coupling, p operand.Mem, plus bool) {
		k := g.V[5]
		g.Mov(coupling, k)
		if plus {
			g.VFMADD231PD(p, k, sums[sum])
		} else {
			g.VFNMADD231PD(p, k, sums[sum])
		}
	}
	used := []int{0, 1, 2, 3, 4}
	if !diagonals {
		used = []int{1, 3, 4}
	}
	g.loopOver(func() {}, func() {
		for _, i := range used {
			g.Mov(g.row(ap+i, 0), sums[i])
		}
		if diagonals {
			add(0, g.row(west, 0), g.row(p0Between, -1), false)
			add(1, g.row(west, 0), g.row(p1Between, -1), false)
		}
		add(1, g.row(centre, 0), g.row(p0, 0), own)
		if diagonals {
			add(1, g.row(east, 0), g.row(p0Between, 0), false)
			add(2, g.row(east, 0), g.row(p1Between, 0), false)
			add(3, g.row(between+west, 0), g.row(p0, 0), false)
		}
		add(3, g.row(between+centre, 0), g.row(p0Between, 0), own)
		add(4, g.row(between+centre, 0), g.row(p1Between, 0), own)
		if diagonals {
			add(4, g.row(between+east, 0), g.row(p0, 1), false)
		}
		for _, i := range used {
			g.Mov(sums[i], g.row(ap+i, 0))
		}
	})
}

// addAP writes the function of columnSplit.add. The rows are P of points between to the column behind, of those on
// coarse columns, and of those between to the column before; AP for the coarse row, as of timesP without its first row,
// and for the next one; and the five of the stencil.
func (g *generator) addAP() {
	g.function("addAP")
	const ownOn, ownBetween, nextOn, nextBetween, stencil = 3, 5, 7, 10, 12
	sums := g.V[:5]
	p := g.V[5]
	add := func(sum int, ap operand.Mem) { g.VFMADD231PD(ap, p, sums[sum]) }
	g.loopOver(func() {}, func() {
		for i, sum := range sums {
			g.Mov(g.row(stencil+i, 0), sum)
		}
		g.Mov(g.row(0, -1), p)
		add(0, g.row(ownBetween+1, -1))
		add(2, g.row(nextBetween+1, -1))
		add(4, g.row(nextBetween, -1))
		g.Mov(g.row(1, 0), p)
		add(0, g.row(ownOn, 0))
		add(2, g.row(nextOn+1, 0))
		add(4, g.row(nextOn, 0))
		add(1, g.row(ownOn+1, 0))
		add(3, g.row(nextOn+2, 0))
		g.Mov(g.row(2, 0), p)
		add(0, g.row(ownBetween, 0))
		add(2, g.row(nextBetween, 0))
		add(1, g.row(ownBetween+1, 0))
		add(3, g.row(nextBetween+1, 0))
		for i, sum := range sums {
			g.Mov(sum, g.row(stencil+i, 0))
		}
	})
}
