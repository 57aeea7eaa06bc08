// Package assembly has what the generators of packages kernel and levels share: the instructions and registers for a
// type of value, and the Go file beside a file of assembly.
package assembly

import (
	"flag"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Machine writes functions for one instruction set and one type of value.
type Machine struct {
	*build.Context
	Arithmetic
	Wide bool                // AVX-512, else AVX2
	Size int                 // bytes of a value
	V    [32]reg.VecPhysical // the second half for AVX-512 only

	of    *Package
	table table
}

// Arithmetic is the instructions for a type of value.
type Arithmetic struct {
	Mov, Broadcast, Add, Sub, Mul, FMA132, FMA213, FMA231, FMSUB213 func(...operand.Op)
	Align                                                           func(...operand.Op) // of AVX-512
}

func newMachine(of *Package, c *build.Context, wide bool, size int) *Machine {
	m := &Machine{Context: c, Wide: wide, Size: size, of: of}
	m.Arithmetic = Of(m, Arithmetic{c.VMOVUPS, c.VBROADCASTSS, c.VADDPS, c.VSUBPS, c.VMULPS, c.VFMADD132PS,
		c.VFMADD213PS, c.VFMADD231PS, c.VFMSUB213PS, c.VALIGND}, Arithmetic{c.VMOVUPD, c.VBROADCASTSD, c.VADDPD,
		c.VSUBPD, c.VMULPD, c.VFMADD132PD, c.VFMADD213PD, c.VFMADD231PD, c.VFMSUB213PD, c.VALIGNQ})
	for i, r := range []reg.VecPhysical{reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9,
		reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15, reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21,
		reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31} {
		if m.V[i] = r; !wide {
			m.V[i] = r.AsY().(reg.VecPhysical)
		}
	}
	m.table.name = m.Suffix()
	m.table.lanes = m.Lanes()
	return m
}

// Of returns the one for the type of a machine: single for float32, double for float64.
func Of[T any](m *Machine, single, double T) T {
	if m.Size == 4 {
		return single
	}
	return double
}

// Suffix returns the end of the names of functions.
func (m *Machine) Suffix() string {
	if m.Wide {
		return fmt.Sprintf("AVX512F%d", 8*m.Size)
	}
	return fmt.Sprintf("AVX2F%d", 8*m.Size)
}

// Bytes returns the bytes of a vector.
func (m *Machine) Bytes() int {
	if m.Wide {
		return 64
	}
	return 32
}

// Lanes returns the number of values in a vector.
func (m *Machine) Lanes() int { return m.Bytes() / m.Size }

// Begin begins a function, which Go has in a field of the struct of all functions. Its signature is that of Go without
// "func".
func (m *Machine) Begin(name, field, signature string) {
	name += m.Suffix()
	m.table.functions = append(m.table.functions, function{name, signature, field})
	s, err := gotypes.ParseSignatureInPackage(m.of.scope, "func"+signature)
	if err != nil {
		panic(err) // the generator has no such type
	}
	m.Function(name)
	m.Attributes(attr.NOSPLIT)
	m.Signature(s)
}

// Package is a package of Go with generated assembly.
type Package struct {
	Name   string
	Types  []string // of which functions have pointers
	Result string   // the type of the struct of functions
	// Table is the beginning of the name of the Go function that returns the struct for a machine, and Value the struct
	// without functions, for a number of lanes.
	Table, Value string

	scope *types.Package
}

// Main is the main function of a generator. write writes the functions for a machine.
func Main(p Package, write func(m *Machine)) {
	set := flag.NewFlagSet("generate", flag.ExitOnError)
	isa := set.String("isa", "avx512", "avx512 or avx2")
	flags := build.NewFlags(set)
	_ = set.Parse(os.Args[1:]) // exits on error
	if *isa != "avx512" && *isa != "avx2" {
		fmt.Fprintf(os.Stderr, "generate: isa %q: allowed are avx512 and avx2\n", *isa)
		os.Exit(2)
	}
	p.scope = types.NewPackage(p.Name, p.Name)
	p.scope.Scope().Insert(types.NewPkgName(token.NoPos, p.scope, "unsafe", types.Unsafe))
	for _, name := range p.Types {
		t := types.NewTypeName(token.NoPos, p.scope, name, nil)
		types.NewNamed(t, types.NewStruct(nil, nil), nil)
		p.scope.Scope().Insert(t)
	}
	context := build.NewContext()
	context.ConstraintExpr("amd64")
	var tables []table
	for _, size := range []int{4, 8} {
		m := newMachine(&p, context, *isa == "avx512", size)
		write(m)
		tables = append(tables, m.table)
	}
	command := "go run main.go " + strings.Join(os.Args[1:], " ") // as avo has it
	if err := p.declare(set.Lookup("out").Value.String(), command, tables); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
	os.Exit(build.Main(flags.Config(), context))
}
