// Command generate writes the assembly of package kernel:
//
//	go run ./generate -isa avx512 -pkg kernel -out avx512_amd64.s
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"jacobi/internal/compute/cpu/declare"
	"jacobi/solver"
)

// command returns the command that runs.
func command() string { return "go run main.go " + strings.Join(os.Args[1:], " ") }

func main() {
	set := flag.NewFlagSet("generate", flag.ExitOnError)
	isa := set.String("isa", "avx512", "avx512 or avx2")
	flags := build.NewFlags(set)
	_ = set.Parse(os.Args[1:]) // exits on error
	out := func() string { return set.Lookup("out").Value.String() }
	machines := map[string]func(solver.DType) machine{"avx512": newAVX512, "avx2": newAVX2}
	newMachine, ok := machines[*isa]
	if !ok {
		fmt.Fprintf(os.Stderr, "generate: isa %q: allowed are avx512 and avx2\n", *isa)
		os.Exit(2)
	}
	signatures, err := parseDeclarations()
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
	context := build.NewContext()
	context.ConstraintExpr("amd64")
	var tables []declare.Table
	for _, t := range []solver.DType{solver.Float32, solver.Float64} {
		m := newMachine(t)
		g := &generator{Context: context, machine: m, signatures: signatures, tables: map[string]operand.Mem{},
			declared: table(m.suffix(), m.lanes())}
		m.use(g)
		for _, s := range sweeps {
			g.sweep(s.name, s.field, s.variant)
		}
		m.collect()
		m.transposes()
		tables = append(tables, g.declared)
	}
	if err := declare.Write(out(), command(), "kernel", tables...); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
	os.Exit(build.Main(flags.Config(), context))
}
