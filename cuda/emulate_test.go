package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The kernels' source, compiled for the CPU with a thread for each GPU thread, computes the right fields and sums, also
// for ranks between two others, and has no race in shared memory or in the exchange of halos.
func TestKernelsOnThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN with -short: TestKernelsOnThreads, which takes a minute")
	}
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("NOT RUN: TestKernelsOnThreads needs g++")
	}
	sources, err := filepath.Glob("*/*.[ch]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range sources { // so that go's test cache depends on them
		if _, err := os.Stat(f); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(t.TempDir(), "emulate")
	if out, err := exec.Command(compiler, "-std=c++17", "-O1", "-g", "-Wall", "-Wno-unknown-pragmas",
		"-Wno-sign-compare", "-ffp-contract=off", "-fsanitize=thread",
		"emulate/main.cpp", "-o", program, "-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	out, err := exec.Command(program).CombinedOutput()
	if strings.Contains(string(out), "FATAL: ThreadSanitizer: unexpected memory mapping") { // too random for older ones
		out, err = exec.Command("setarch", "-R", program).CombinedOutput()
	}
	want := `
f32, 250 columns, 16 rows, 1 ranks, 2 passes of 16 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32, 250 columns, 33 rows, 1 ranks, 1 passes of 5 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32, 250 columns, 45 rows, 3 ranks, 2 passes of 6 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32, 5 columns, 14 rows, 4 ranks, 4 passes of 3 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32, 130 columns, 36 rows, 2 ranks, 2 passes of 9 sweeps, 1 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
f32, 260 columns, 24 rows, 1 ranks, 2 passes of 16 sweeps, 1 and 2 tiles, 16 rows a warp: 0 rows, 0 sums, 0 words wrong
f32, 131 columns, 24 rows, 1 ranks, 1 passes of 5 sweeps, 2 and 1 tiles, 16 rows a warp: 0 rows, 0 sums, 0 words wrong
f32, 250 columns, 45 rows, 3 ranks, 3 passes of 7 sweeps, 1 and 2 tiles, 24 rows a warp: 0 rows, 0 sums, 0 words wrong
f64, 150 columns, 56 rows, 3 ranks, 2 passes of 12 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f64, 140 columns, 30 rows, 1 ranks, 1 passes of 14 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f64, 129 columns, 32 rows, 2 ranks, 2 passes of 8 sweeps, 2 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
f64, 131 columns, 24 rows, 1 ranks, 2 passes of 12 sweeps, 1 and 2 tiles, 8 rows a warp: 0 rows, 0 sums, 0 words wrong
`
	if err != nil || string(out) != want[1:] {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}
