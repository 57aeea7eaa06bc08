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
	{"sweep", "ByOperator[Plain].Whole.Sweep", variant{}},
	{"stream", "ByOperator[Plain].Whole.Stream", variant{stream: true}},
	{"fixed", "ByOperator[Plain].Masked.Sweep", variant{swept: true}},
	{"streamFixed", "ByOperator[Plain].Masked.Stream", variant{swept: true, stream: true}},
	{"whole", "ByOperator[General].Whole.Sweep", variant{operator: kernel.General}},
	{"streamWhole", "ByOperator[General].Whole.Stream", variant{operator: kernel.General, stream: true}},
	{"general", "ByOperator[General].Masked.Sweep", variant{operator: kernel.General, swept: true}},
	{"streamGeneral", "ByOperator[General].Masked.Stream",
		variant{operator: kernel.General, swept: true, stream: true}},
	{"bare", "ByOperator[Plain].Bare.Sweep", variant{bare: true}},
	{"streamBare", "ByOperator[Plain].Bare.Stream", variant{bare: true, stream: true}},
	{"bareWhole", "ByOperator[General].Bare.Sweep", variant{operator: kernel.General, bare: true}},
	{"streamBareWhole", "ByOperator[General].Bare.Stream", variant{operator: kernel.General, bare: true, stream: true}},
	{"weighted", "ByOperator[Weighted].Whole.Sweep", variant{operator: kernel.Weighted}},
	{"streamWeighted", "ByOperator[Weighted].Whole.Stream", variant{operator: kernel.Weighted, stream: true}},
	{"maskedWeighted", "ByOperator[Weighted].Masked.Sweep", variant{operator: kernel.Weighted, swept: true}},
	{"streamMaskedWeighted", "ByOperator[Weighted].Masked.Stream",
		variant{operator: kernel.Weighted, swept: true, stream: true}},
	{"bareWeighted", "ByOperator[Weighted].Bare.Sweep", variant{operator: kernel.Weighted, bare: true}},
	{"streamBareWeighted", "ByOperator[Weighted].Bare.Stream",
		variant{operator: kernel.Weighted, bare: true, stream: true}},
}
