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
	{"sweep", "Sweep", variant{}},
	{"stream", "Stream", variant{stream: true}},
	{"edge", "Edge", variant{masked: true}},
	{"fixed", "Fixed.Sweep", variant{swept: true}},
	{"streamFixed", "Fixed.Stream", variant{swept: true, stream: true}},
	{"whole", "Whole.Sweep", variant{general: true}},
	{"streamWhole", "Whole.Stream", variant{general: true, stream: true}},
	{"general", "General.Sweep", variant{swept: true, general: true}},
	{"streamGeneral", "General.Stream", variant{swept: true, general: true, stream: true}},
	{"bare", "Bare.Sweep", variant{bare: true}},
	{"streamBare", "Bare.Stream", variant{bare: true, stream: true}},
	{"bareWhole", "BareWhole.Sweep", variant{general: true, bare: true}},
	{"streamBareWhole", "BareWhole.Stream", variant{general: true, bare: true, stream: true}},
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
