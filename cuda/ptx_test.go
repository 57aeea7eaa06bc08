package cuda

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The embedded PTX and machine code, which gzip has packed, were built from the kernels in the tree, by the build
// script in the tree.
func TestKernelsComeFromTheSources(t *testing.T) {
	paths, err := filepath.Glob("kernels/*")
	if err != nil {
		t.Fatal(err)
	}
	var found strings.Builder
	for _, pattern := range []string{"build.sh", ".cu", ".cuh", ".ptx", ".ptx.gz", ".cubin.gz"} {
		for _, p := range paths {
			if !strings.HasSuffix(p, pattern) {
				continue
			}
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			name, packed := strings.CutSuffix(filepath.Base(p), ".gz")
			if packed {
				z, err := gzip.NewReader(bytes.NewReader(b))
				if err != nil {
					t.Fatalf("%s: %v", p, err)
				}
				if b, err = io.ReadAll(z); err != nil {
					t.Fatalf("%s: %v", p, err)
				}
			}
			fmt.Fprintf(&found, "%x  %s\n", sha256.Sum256(b), name)
		}
	}
	recorded, err := os.ReadFile("kernels/files.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if found.String() != string(recorded) {
		t.Errorf("files.sha256 has\n%sbut the tree has\n%srun make kernels on a machine with nvcc", recorded,
			found.String())
	}
}
