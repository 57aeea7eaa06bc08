package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The kernels' source, compiled for the CPU with a thread for each GPU thread, computes the right fields and sums, with
// every operator and wall, (b32, b64) with norms of few sweeps, and (w64) with weights, also for ranks between two
// others, and has no race in shared memory or in the exchange of halos.
func TestKernelsOnThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN with -short: TestKernelsOnThreads, which takes minutes")
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
f32 ffpp, 250 x 16, 1 ranks, 2 passes of 16 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32 ffff, 250 x 33, 1 ranks, 1 passes of 5 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32 ffpp, 250 x 45, 3 ranks, 2 passes of 6 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32 ffpp, 5 x 14, 4 ranks, 4 passes of 3 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32 ffpp, 130 x 36, 2 ranks, 2 passes of 9 sweeps, 1 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
f32 ffpp, 260 x 24, 1 ranks, 2 passes of 16 sweeps, 1 and 2 tiles, 16 rows a warp: 0 rows, 0 sums, 0 words wrong
f32 ffff, 131 x 24, 1 ranks, 1 passes of 5 sweeps, 2 and 1 tiles, 16 rows a warp: 0 rows, 0 sums, 0 words wrong
f32 ffpp, 250 x 45, 3 ranks, 3 passes of 7 sweeps, 1 and 2 tiles, 24 rows a warp: 0 rows, 0 sums, 0 words wrong
f32 ffpp, 130 x 80, 2 ranks, 5 passes of 4 sweeps, halo 16, 3 blocks of 3 pipelines: 0 rows, 0 sums, 0 words wrong
f32 ffpp, 131 x 80, 2 ranks, 5 passes of 4 sweeps, halo 16, 4 and 4 tiles, 16 rows a warp: 0 rows, 0 sums, 0 words wrong
f32 ffff, 515 x 40, 1 ranks, 2 passes of 1 sweeps, 2 blocks: 0 rows, 0 sums, 0 words wrong
b32 ffpp, 250 x 16, 1 ranks, 2 passes of 16 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
b32 ffpp, 250 x 45, 3 ranks, 4 passes of 6 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
b32 ffff, 250 x 33, 1 ranks, 3 passes of 2 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
b32 ffpp, 130 x 80, 2 ranks, 5 passes of 4 sweeps, halo 16, 3 blocks of 3 pipelines: 0 rows, 0 sums, 0 words wrong
f32 ffff points, 620 x 140, 1 ranks, 1 passes of 7 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32 ffpp points, 250 x 45, 3 ranks, 2 passes of 6 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32 nnnn, 250 x 33, 1 ranks, 1 passes of 16 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32 nfnf, 249 x 41, 2 ranks, 2 passes of 5 sweeps, 2 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
f32 ffff source, 620 x 90, 1 ranks, 1 passes of 16 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32 ffpp source points, 250 x 50, 3 ranks, 2 passes of 11 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32 nnnn source points, 256 x 50, 2 ranks, 2 passes of 8 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f32 fnfn source points, 130 x 20, 1 ranks, 3 passes of 2 sweeps, 2 blocks of 4 pipelines: 0 rows, 0 sums, 0 words wrong
f32 ppff points, 515 x 40, 2 ranks, 3 passes of 1 sweeps, 2 blocks: 0 rows, 0 sums, 0 words wrong
f32 pppp source points, 514 x 40, 2 ranks, 3 passes of 1 sweeps, 2 blocks: 0 rows, 0 sums, 0 words wrong
f32 pppp source points, 3 x 12, 1 ranks, 3 passes of 1 sweeps, 1 blocks: 0 rows, 0 sums, 0 words wrong
f32 nnnn source points, 513 x 50, 2 ranks, 2 passes of 1 sweeps, 3 blocks: 0 rows, 0 sums, 0 words wrong
f64 ffpp, 150 x 56, 3 ranks, 2 passes of 12 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f64 ffff, 140 x 30, 1 ranks, 1 passes of 14 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f64 ffpp, 129 x 32, 2 ranks, 2 passes of 8 sweeps, 2 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
f64 ffpp, 131 x 24, 1 ranks, 2 passes of 12 sweeps, 1 and 2 tiles, 8 rows a warp: 0 rows, 0 sums, 0 words wrong
f64 ffpp, 131 x 80, 2 ranks, 5 passes of 4 sweeps, halo 16, 8 and 8 tiles, 8 rows a warp: 0 rows, 0 sums, 0 words wrong
f64 nfff points, 310 x 130, 1 ranks, 1 passes of 12 sweeps, 1 blocks of 3 pipelines: 0 rows, 0 sums, 0 words wrong
f64 nnpp, 150 x 56, 3 ranks, 2 passes of 7 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f64 fffn source points, 310 x 90, 2 ranks, 1 passes of 12 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
f64 nnpp source points, 140 x 24, 1 ranks, 2 passes of 14 sweeps, 1 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
f64 ppnn points, 260 x 30, 1 ranks, 2 passes of 1 sweeps, 1 blocks: 0 rows, 0 sums, 0 words wrong
f64 ppfn source points, 516 x 50, 2 ranks, 2 passes of 1 sweeps, 2 blocks: 0 rows, 0 sums, 0 words wrong
b64 ffpp, 150 x 56, 3 ranks, 2 passes of 12 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
b64 ffff, 140 x 30, 1 ranks, 2 passes of 16 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
b64 ffpp, 131 x 80, 2 ranks, 5 passes of 4 sweeps, halo 16, 3 blocks of 3 pipelines: 0 rows, 0 sums, 0 words wrong
w64 ffpp, 150 x 56, 3 ranks, 2 passes of 12 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
w64 nfff points, 310 x 130, 1 ranks, 1 passes of 11 sweeps, 1 blocks of 3 pipelines: 0 rows, 0 sums, 0 words wrong
w64 nnpp source points, 140 x 50, 2 ranks, 2 passes of 14 sweeps, 1 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
w64 fnpp, 130 x 80, 2 ranks, 5 passes of 4 sweeps, halo 16, 3 blocks of 3 pipelines: 0 rows, 0 sums, 0 words wrong
w64 fffn source points, 310 x 90, 2 ranks, 2 passes of 3 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
w64 ppnn points, 260 x 30, 1 ranks, 2 passes of 1 sweeps, 1 blocks: 0 rows, 0 sums, 0 words wrong
w64 ppfn source points, 516 x 50, 2 ranks, 2 passes of 1 sweeps, 2 blocks: 0 rows, 0 sums, 0 words wrong
`
	if err != nil || string(out) != want[1:] {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}
