package main

import (
	"fmt"

	"jacobi/internal/compute/cpu/declare"
	"jacobi/internal/compute/cpu/neon"
	"jacobi/internal/compute/cpu/operator"
)

// General registers of the functions for arm64: the arguments, the index of the first value, the number of values and
// the last index, addresses, and the pointers of the arguments.
const (
	regArgs    = "R0"
	regIndex   = "R1"
	regN       = "R2"
	regLast    = "R3"
	regAddress = "R4"
	regValue   = "R5"
	regFirst   = 6 // pointer k is R(6+k)
)

// group is four vectors, the values of one turn of a loop, or two for float32 values beside float64.
type group []neon.Reg

func from(r neon.Reg) group { return group{r, r + 1, r + 2, r + 3} }

// arm64 writes functions for one type of value, as generator does. A turn of their loops works on 64 bytes.
type arm64 struct {
	*neon.Writer
	t        neon.Type
	declared declare.Table
}

// writeARM64 writes the functions for arm64 to a file.
func writeARM64(name string) error {
	var tables []declare.Table
	w := neon.New(command())
	for _, t := range []neon.Type{neon.Float32, neon.Float64} {
		g := &arm64{Writer: w, t: t}
		g.declared = table(g.suffix(), 64/int(t))
		g.sweep("sweep", false, false)
		g.sweep("sweepSource", true, false)
		g.sweep("defects", false, true)
		g.sweep("defectsSource", true, true)
		g.add()
		if t == neon.Float64 {
			g.squares()
			g.narrow()
			g.subtract()
			g.products()
			g.step()
		} else {
			g.scale()
			g.addScaled()
			g.blend()
			g.gather()
			g.between()
		}
		tables = append(tables, g.declared)
	}
	if err := w.Save(name); err != nil {
		return err
	}
	return declare.Write(name, command(), "levels", tables...)
}

// function begins a function.
func (g *arm64) function(name string) {
	g.Function(add(&g.declared, name, g.suffix()), "(r *rowArgs)", 8)
	g.Op("MOVD", "r+0(FP)", regArgs)
}

func (g *arm64) suffix() string { return fmt.Sprintf("NEONF%d", 8*g.t) }

// pointers loads pointers of the arguments.
func (g *arm64) pointers(args ...int) []string {
	var names []string
	for k, arg := range args {
		names = append(names, fmt.Sprintf("R%d", regFirst+k))
		g.Op("MOVD", neon.Memory(regArgs, 8*arg), names[k])
	}
	return names
}

// constant spreads a constant of the arguments.
func (g *arm64) constant(arg int, r neon.Reg) {
	g.Op("ADD", fmt.Sprintf("$%d", 8*arg), regArgs, regAddress)
	g.Spread(g.t, regAddress, r)
}

// address sets regAddress to the value of a row at the present index.
func (g *arm64) address(base string, t neon.Type) {
	shift := map[neon.Type]int{neon.Float32: 2, neon.Float64: 3}[t]
	g.Op("ADD", fmt.Sprintf("%s<<%d", regIndex, shift), base, regAddress)
}

// load loads the values of a row at the present index, shifted by a number of values.
func (g *arm64) load(base string, shift int, v group) {
	g.address(base, g.t)
	if shift != 0 { // pairs have multiples of their size as offsets
		for j, r := range v {
			g.Load(regAddress, shift*int(g.t)+j*neon.VectorBytes, r)
		}
		return
	}
	for j := 0; j < len(v); j += 2 {
		g.LoadPair(regAddress, j*neon.VectorBytes, v[j], v[j+1])
	}
}

// store stores values to a row.
func (g *arm64) store(v group, base string) {
	g.address(base, g.t)
	for j := 0; j < len(v); j += 2 {
		g.StorePair(v[j], v[j+1], regAddress, j*neon.VectorBytes)
	}
}

// each applies an instruction to groups of registers.
func (g *arm64) each(f func(t neon.Type, a, b, c neon.Reg), a, b, c group) {
	for j := range c {
		f(g.t, a[j], b[j], c[j])
	}
}

// spread returns a group whose vectors are all r.
func spread(r neon.Reg) group { return group{r, r, r, r} }

// loop ends a function with a loop of body over n values.
func (g *arm64) loop(body func()) {
	step := fmt.Sprintf("$%d", 64/int(g.t))
	g.Op("MOVD", neon.Memory(regArgs, 8*argN), regN)
	g.Op("MOVD", "ZR", regIndex)
	g.Op("SUB", step, regN, regLast)
	g.Label("loop")
	body()
	g.Op("ADD", step, regIndex)
	g.Op("CMP", regLast, regIndex)
	g.Op("BLE", "loop")
	g.Op("CMP", regN, regIndex)
	g.Op("BGE", "done")
	g.Op("MOVD", regLast, regIndex)
	g.Op("B", "loop")
	g.Label("done")
	g.Op("RET")
}

// sweep writes the function for dst = u + w d, or for dst = d, as generator.sweep does.
func (g *arm64) sweep(name string, source, defects bool) {
	g.function(name)
	p := g.pointers(argDst, argA, argB, argC, argD)
	dst, u, north, south, b := p[0], p[1], p[2], p[3], p[4]
	h, q, w := spread(24), spread(25), spread(26)
	g.constant(argX, h[0])
	g.constant(argY, q[0])
	g.constant(argZ, w[0])
	s, t, c, x := from(0), from(4), from(8), from(12)
	o := g.operator(h, q)
	g.loop(func() {
		g.load(u, -1, s)
		o.Neighbours(g.place(u, 1, c), s, s)
		g.load(north, 0, t)
		o.Neighbours(g.place(south, 0, x), t, t)
		right := g.zeros(x)
		if source {
			right = g.place(b, 0, x)
		}
		value := o.General(s, t, right)
		g.load(u, 0, c)
		if defects {
			g.each(g.Subtract, c, value, c)
		} else {
			g.each(g.Subtract, c, value, value)
			g.each(g.MultiplyAdd, w, value, c)
		}
		g.store(c, dst)
	})
}

// place is an operand that is brought into registers where it is needed.
type place func() group

// place returns the values of a row at the present index, shifted by a number of values.
func (g *arm64) place(base string, shift int, v group) place {
	return func() group {
		g.load(base, shift, v)
		return v
	}
}

// zeros returns values that are 0.
func (g *arm64) zeros(v group) place {
	return func() group {
		for _, r := range v {
			g.Zero(r)
		}
		return v
	}
}

// operator returns the general operator with weights h and q.
func (g *arm64) operator(h, q group) operator.Operator[place, group] {
	return operator.Operator[place, group]{
		Add:      func(a place, b, to group) { g.each(g.Add, a(), b, to) },
		Subtract: func(a, b, to group) { g.each(g.Subtract, a, b, to) },
		Blend: func(s, n group) group {
			g.each(g.MultiplyAdd, q, n, s)
			return s
		},
		Scale: func(b place, n group) group {
			v := b()
			g.each(g.MultiplyAdd, h, n, v)
			return v
		},
	}
}

// add writes the function for dst = a + x e with float32 values e in B; for float32, x is 1.
func (g *arm64) add() {
	g.function("add")
	p := g.pointers(argDst, argA, argB)
	dst, a, e := p[0], p[1], p[2]
	x, v, w := spread(24), from(0), from(4)
	if g.t == neon.Float64 {
		g.constant(argX, x[0])
	}
	g.loop(func() {
		g.load(a, 0, v)
		if g.t == neon.Float32 {
			g.load(e, 0, w)
			g.each(g.Add, w, v, v)
		} else {
			g.address(e, neon.Float32)
			g.LoadPair(regAddress, 0, 16, 17)
			for j := range 2 {
				g.WidenLow(neon.Reg(16+j), w[2*j])
				g.WidenHigh(neon.Reg(16+j), w[2*j+1])
			}
			g.each(g.MultiplyAdd, x, w, v)
		}
		g.store(v, dst)
	})
}

// narrow writes the function for dst = x a, rounded to float32.
func (g *arm64) narrow() {
	g.function("narrow")
	p := g.pointers(argDst, argA)
	x, v := spread(24), from(0)
	g.constant(argX, x[0])
	g.loop(func() {
		g.load(p[1], 0, v)
		g.each(g.Multiply, x, v, v)
		g.address(p[0], neon.Float32)
		for j := range 2 {
			g.NarrowLow(v[2*j], neon.Reg(4+j))
			g.NarrowHigh(v[2*j+1], neon.Reg(4+j))
		}
		g.StorePair(4, 5, regAddress, 0)
	})
}

// pairs turns two groups of four values each into their even and their odd values.
func (g *arm64) pairs(v group, even, odd group) {
	for j := range even {
		g.Even(g.t, v[2*j+1], v[2*j], even[j])
		g.Odd(g.t, v[2*j+1], v[2*j], odd[j])
	}
}

// addGroups adds, for each of two groups, both values of sum to four equal values of dst.
func (g *arm64) addGroups(sum group, dst string) {
	acc, t := from(16), group{20, 20}
	g.load(dst, 0, acc)
	for j, s := range sum {
		g.Extract(8, s, s, t[j])
		g.Add(g.t, t[j], s, s)
		g.Add(g.t, acc[2*j], s, acc[2*j])
		g.Add(g.t, acc[2*j+1], s, acc[2*j+1])
	}
	g.store(acc, dst)
}

// squares writes the function that adds, for each group of four values of A, the sum of their squares to four equal
// values of dst. n is a multiple of 8; X is the smallest normal number.
func (g *arm64) squares() {
	g.function("squares")
	p := g.pointers(argDst, argA)
	least, v, even, odd, sum := neon.Reg(24), from(0), group{4, 5}, group{6, 7}, group{8, 9}
	g.constant(argX, least)
	g.loop(func() {
		g.load(p[1], 0, v)
		g.pairs(v, even, odd)
		for _, r := range sum {
			g.Move(least, r)
		}
		g.each(g.MultiplyAdd, even, even, sum)
		g.each(g.MultiplyAdd, odd, odd, sum)
		g.addGroups(sum, p[0])
	})
}

// products writes the function that adds, for each group of four values of A and of B, the sum of their products to
// four equal values of dst. n is a multiple of 8.
func (g *arm64) products() {
	g.function("products")
	p := g.pointers(argDst, argA, argB)
	v, even, odd, left, right := from(0), group{4, 5}, group{6, 7}, group{8, 9}, group{10, 11}
	g.loop(func() {
		g.load(p[1], 0, v)
		g.pairs(v, even, odd)
		g.load(p[2], 0, v)
		g.pairs(v, left, right)
		g.each(g.Multiply, left, even, even)
		g.each(g.MultiplyAdd, right, odd, even)
		g.addGroups(even, p[0])
	})
}

// subtract writes the function for dst = a - b.
func (g *arm64) subtract() {
	g.function("subtract")
	p := g.pointers(argDst, argA, argB)
	a, b := from(0), from(4)
	g.loop(func() {
		g.load(p[1], 0, a)
		g.load(p[2], 0, b)
		g.each(g.Subtract, b, a, a)
		g.store(a, p[0])
	})
}

// step writes the function for a = x (dst - b) + y a and then dst = b + a, where A and B are a and b; n is a multiple
// of 8.
func (g *arm64) step() {
	g.function("step")
	p := g.pointers(argDst, argA, argB)
	x, y, a, b, d := spread(24), spread(25), from(0), from(4), from(8)
	g.constant(argX, x[0])
	g.constant(argY, y[0])
	g.loop(func() {
		g.load(p[2], 0, b)
		g.load(p[0], 0, d)
		g.each(g.Subtract, b, d, d)
		g.load(p[1], 0, a)
		g.each(g.Multiply, y, a, a)
		g.each(g.MultiplyAdd, x, d, a)
		g.store(a, p[1])
		g.each(g.Add, b, a, a)
		g.store(a, p[0])
	})
}
