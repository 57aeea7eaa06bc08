package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"

	"github.com/mmcloughlin/avo/gotypes"
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
