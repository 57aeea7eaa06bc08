// Command generate writes the assembly of package levels:
//
//	go run ./generate -isa avx512 -pkg levels -out avx512_amd64.s
package main

import "jacobi/internal/compute/cpu/assembly"

func main() {
	p := assembly.Package{Name: "levels", Types: []string{"rowArgs"}, Result: "*functions", Table: "functions",
		Value: "&functions{lanes: %d}"}
	assembly.Main(p, func(m *assembly.Machine) {
		g := &generator{Machine: m}
		if m.Size == 8 { // coarser levels have a source
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
		if m.Size == 8 {
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
			if !m.Wide { // their masks are values; the kernel for AVX-512 calls them, too
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
			if !m.Wide { // functions for AVX-512 would not be faster
				g.spread("spreadOne", false)
				g.spread("spreadTwo", true)
				g.collect()
			}
		}
	})
}
