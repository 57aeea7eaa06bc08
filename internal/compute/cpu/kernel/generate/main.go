// Command generate writes the assembly of package kernel:
//
//	go run ./generate -isa avx512 -pkg kernel -out avx512_amd64.s
package main

import (
	"github.com/mmcloughlin/avo/operand"

	"jacobi/internal/compute/cpu/assembly"
	"jacobi/internal/compute/cpu/kernel"
)

func main() {
	p := assembly.Package{Name: "kernel", Types: []string{"Span", "Collector"}, Result: "Kernel", Table: "kernel",
		Value: "Kernel{Lanes: %d}"}
	assembly.Main(p, func(m *assembly.Machine) {
		g := &generator{Machine: m, tables: map[string]operand.Mem{}}
		if m.Wide {
			g.machine = newAVX512(g)
		} else {
			g.machine = newAVX2(g)
		}
		for _, s := range sweeps {
			g.sweep(s.name, s.field, s.variant)
		}
		g.collect()
		g.transposes()
	})
}

// The signatures of the functions.
const (
	sweepSignature     = "(s *Span)"
	collectSignature   = "(c *Collector, acc unsafe.Pointer, n int) bool"
	transposeSignature = "(dst, src unsafe.Pointer, blocks int)"
)

// sweeps are the functions that sweep, and their fields in kernel.Kernel.
var sweeps = []struct {
	name, field string
	variant
}{
	{"sweep", "Sweeps[Plain].Whole.Sweep", variant{}},
	{"stream", "Sweeps[Plain].Whole.Stream", variant{stream: true}},
	{"fixed", "Sweeps[Plain].Masked.Sweep", variant{swept: true}},
	{"streamFixed", "Sweeps[Plain].Masked.Stream", variant{swept: true, stream: true}},
	{"whole", "Sweeps[General].Whole.Sweep", variant{operator: kernel.General}},
	{"streamWhole", "Sweeps[General].Whole.Stream", variant{operator: kernel.General, stream: true}},
	{"general", "Sweeps[General].Masked.Sweep", variant{operator: kernel.General, swept: true}},
	{"streamGeneral", "Sweeps[General].Masked.Stream", variant{operator: kernel.General, swept: true, stream: true}},
	{"bare", "Sweeps[Plain].Bare.Sweep", variant{bare: true}},
	{"streamBare", "Sweeps[Plain].Bare.Stream", variant{bare: true, stream: true}},
	{"bareWhole", "Sweeps[General].Bare.Sweep", variant{operator: kernel.General, bare: true}},
	{"streamBareWhole", "Sweeps[General].Bare.Stream", variant{operator: kernel.General, bare: true, stream: true}},
	{"weighted", "Sweeps[Weighted].Whole.Sweep", variant{operator: kernel.Weighted}},
	{"streamWeighted", "Sweeps[Weighted].Whole.Stream", variant{operator: kernel.Weighted, stream: true}},
	{"maskedWeighted", "Sweeps[Weighted].Masked.Sweep", variant{operator: kernel.Weighted, swept: true}},
	{"streamMaskedWeighted", "Sweeps[Weighted].Masked.Stream",
		variant{operator: kernel.Weighted, swept: true, stream: true}},
	{"bareWeighted", "Sweeps[Weighted].Bare.Sweep", variant{operator: kernel.Weighted, bare: true}},
	{"streamBareWeighted", "Sweeps[Weighted].Bare.Stream",
		variant{operator: kernel.Weighted, bare: true, stream: true}},
}
