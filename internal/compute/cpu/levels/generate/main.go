// Command generate writes the assembly of package levels:
//
//	go run ./generate -isa avx512 -pkg levels -out avx512_amd64.s
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/mmcloughlin/avo/build"

	"jacobi/internal/compute/cpu/declare"
)

// command returns the command that runs.
func command() string { return "go run main.go " + strings.Join(os.Args[1:], " ") }

func main() {
	set := flag.NewFlagSet("generate", flag.ExitOnError)
	isa := set.String("isa", "avx512", "avx512 or avx2")
	flags := build.NewFlags(set)
	_ = set.Parse(os.Args[1:]) // exits on error
	out := func() string { return set.Lookup("out").Value.String() }
	if *isa != "avx512" && *isa != "avx2" {
		fmt.Fprintf(os.Stderr, "generate: isa %q: allowed are avx512 and avx2\n", *isa)
		os.Exit(2)
	}
	context := build.NewContext()
	context.ConstraintExpr("amd64")
	var tables []declare.Table
	for _, size := range []int{4, 8} {
		g := newGenerator(context, *isa == "avx512", size)
		if size == 8 { // coarser levels have a source
			g.sweep("sweep", false)
			g.pair("pair", false)
			g.defects("defects", false)
		}
		g.sweep("sweepSource", true)
		g.pair("pairSource", true)
		g.defects("defectsSource", true)
		g.points("sweepPoints", true, false)
		g.points("defectPoints", false, false)
		g.add()
		if size == 8 {
			g.multiply()
			g.squares()
			g.narrow()
			g.subtract()
			g.products()
			g.step()
			g.points("sweepKeepPoints", true, true)
			g.pointProducts()
			g.timesP("timesPOwn", true, true)
			g.timesP("timesPBeside", false, true)
			g.timesP("timesPStraight", false, false)
			g.addAP()
			if !g.wide { // their masks are values; the kernel for AVX-512 calls them, too
				g.split()
				g.excess()
				g.interpolateAlong()
				g.interpolateAcross()
				g.interpolateBoth()
				g.residuals()
				g.roots()
				g.scaling()
			}
		} else {
			g.scale()
			g.addScaled()
			g.blend()
			g.gather()
			g.between()
			if !g.wide { // functions for AVX-512 would not be faster
				g.spread("spreadOne", false)
				g.spread("spreadTwo", true)
				g.collect()
			}
		}
		tables = append(tables, g.declared)
	}
	if err := declare.Write(out(), command(), "levels", tables...); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
	os.Exit(build.Main(flags.Config(), context))
}
