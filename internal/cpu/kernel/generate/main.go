// Command generate writes the assembly of package kernel:
//
//	go run ./generate -isa avx512 -pkg kernel -out avx512_amd64.s
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"jacobi/solver"
)

func main() {
	set := flag.NewFlagSet("generate", flag.ExitOnError)
	isa := set.String("isa", "avx512", "avx512, avx2 or neon")
	flags := build.NewFlags(set)
	_ = set.Parse(os.Args[1:]) // exits on error
	machines := map[string]func(solver.DType) machine{"avx512": newAVX512, "avx2": newAVX2}
	newMachine, ok := machines[*isa]
	if *isa == "neon" {
		if err := writeARM64(set.Lookup("out").Value.String()); err != nil {
			fmt.Fprintln(os.Stderr, "generate:", err)
			os.Exit(1)
		}
		return
	}
	if !ok {
		fmt.Fprintf(os.Stderr, "generate: isa %q: allowed are avx512, avx2 and neon\n", *isa)
		os.Exit(2)
	}
	signatures, err := parseDeclarations()
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
	context := build.NewContext()
	context.ConstraintExpr("amd64")
	for _, t := range []solver.DType{solver.Float32, solver.Float64} {
		m := newMachine(t)
		g := &generator{Context: context, machine: m, signatures: signatures, tables: map[string]operand.Mem{}}
		m.use(g)
		g.sweep("sweep", variant{})
		g.sweep("stream", variant{stream: true})
		g.sweep("edge", variant{masked: true})
		g.sweep("fixed", variant{swept: true})
		g.sweep("streamFixed", variant{swept: true, stream: true})
		g.sweep("whole", variant{general: true})
		g.sweep("streamWhole", variant{general: true, stream: true})
		g.sweep("general", variant{swept: true, general: true})
		g.sweep("streamGeneral", variant{swept: true, general: true, stream: true})
		g.sweep("bare", variant{bare: true})
		g.sweep("streamBare", variant{bare: true, stream: true})
		g.sweep("bareWhole", variant{general: true, bare: true})
		g.sweep("streamBareWhole", variant{general: true, bare: true, stream: true})
		if t == solver.Float64 {
			g.sweep("weighted", variant{swept: true, general: true, weighted: true})
			g.sweep("streamWeighted", variant{swept: true, general: true, weighted: true, stream: true})
			g.sweep("weightedWhole", variant{general: true, weighted: true})
			g.sweep("streamWeightedWhole", variant{general: true, weighted: true, stream: true})
		}
		m.collect()
		m.transposes()
	}
	os.Exit(build.Main(flags.Config(), context))
}
