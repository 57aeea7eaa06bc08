package cuda

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The embedded PTX was made from the kernels in the tree, by the build script in the tree.
func TestPTXComesFromTheSources(t *testing.T) {
	h := sha256.New()
	for _, name := range []string{"build.sh", "exchange.cu", "pass.cuh", "sum.cuh", "sweep.cu", "sweep_deep.cu", "sweep_once.cu"} {
		b, err := os.ReadFile(filepath.Join("kernels", name))
		if err != nil {
			t.Fatal(err)
		}
		h.Write(b)
	}
	want := fmt.Sprintf("// made from %x", h.Sum(nil))
	if first, _, _ := strings.Cut(string(sweepPTX), "\n"); first != want {
		t.Errorf("sweep.ptx begins with %q, want %q: run make kernels on a machine with nvcc", first, want)
	}
	sources, err := filepath.Glob("kernels/*.cu*")
	if err != nil || len(sources) != 6 {
		t.Errorf("%d sources in kernels (%v), 6 are counted", len(sources), err)
	}
}
