package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"

	"github.com/mmcloughlin/avo/gotypes"

	"jacobi/internal/compute/cpu/declare"
	"jacobi/internal/compute/cpu/kernel"
)

// declarations are the Go signatures of the functions, as in package kernel.
const declarations = `package kernel

import "unsafe"

type (
	Span      struct{}
	Collector struct{}
)

func sweep(s *Span)
func collect(c *Collector, acc unsafe.Pointer, n int) bool
func transpose(dst, src unsafe.Pointer, blocks int)
`

// parseDeclarations returns the signatures by name.
func parseDeclarations() (map[string]*gotypes.Signature, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "declarations.go", declarations, 0)
	if err != nil {
		return nil, err
	}
	pkg, err := (&types.Config{Importer: importer.Default()}).Check("kernel", files, []*ast.File{file}, nil)
	if err != nil {
		return nil, err
	}
	signatures := map[string]*gotypes.Signature{}
	for _, name := range pkg.Scope().Names() {
		if f, ok := pkg.Scope().Lookup(name).(*types.Func); ok {
			signatures[name] = gotypes.NewSignature(pkg, f.Signature())
		}
	}
	return signatures, nil
}

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

// table begins the table of functions for one type of value.
func table(suffix string, lanes int) declare.Table {
	return declare.Table{Name: "kernel" + suffix, Type: "Kernel", Value: fmt.Sprintf("Kernel{Lanes: %d}", lanes)}
}

// add adds a function with the signature of a declaration to a table.
func add(t *declare.Table, name, suffix, field, declaration string) declare.Function {
	_, signature, _ := strings.Cut(declarations, "func "+declaration)
	signature, _, _ = strings.Cut(signature, "\n")
	f := declare.Function{Name: name + suffix, Signature: signature, Field: field}
	t.Functions = append(t.Functions, f)
	return f
}
