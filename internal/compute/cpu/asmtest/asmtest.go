// Package asmtest compares the assembly in the tree with the output of its generator.
package asmtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Generated fails if avx512_amd64.s or avx2_amd64.s of the package under test, which has the given name, or the Go file
// beside it differs from the output of the package's generator, in the folder generate.
func Generated(t *testing.T, pkg string) {
	t.Helper()
	dir := t.TempDir()
	generate := filepath.Join(dir, "generate")
	if out, err := exec.Command("go", "build", "-o", generate, "./generate").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for isa, name := range map[string]string{"avx512": "avx512_amd64.s", "avx2": "avx2_amd64.s"} {
		cmd := exec.Command(generate, "-isa", isa, "-pkg", pkg, "-out", name)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, name := range []string{name, strings.TrimSuffix(name, ".s") + ".go"} {
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			// The first line names the command, which lies elsewhere here.
			_, got, _ = bytes.Cut(got, []byte("\n"))
			_, want, _ = bytes.Cut(want, []byte("\n"))
			if !bytes.Equal(got, want) {
				t.Errorf("%s does not come from the generator: run go generate", name)
			}
		}
	}
}
