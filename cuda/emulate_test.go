package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jacobi/cuda/driver"
)

// The kernels' source, compiled for the CPU with a fiber for each GPU thread, computes the right fields and sums, with
// every operator and wall, and (b32, b64) with norms of few sweeps, also for ranks between two others. Under
// ThreadSanitizer some cases, which together run all kernels, have no race in shared memory or in the exchange of
// halos.
func TestKernelsOnFibers(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN with -short: TestKernelsOnFibers, which make test runs")
	}
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("NOT RUN: TestKernelsOnFibers needs g++")
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
	for _, c := range []struct {
		name, want  string
		flags, args []string
	}{
		{name: "all", want: onFibers[1:]},
		{name: "races", flags: []string{"-fsanitize=thread"}, want: raced(onFibers), args: []string{"raced"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "emulate")
			// An optimizer takes longer than it saves.
			compile := exec.Command(compiler, append(c.flags, "-std=c++17", "-O0", "-g1", "-Wall",
				"-Wno-unknown-pragmas", "-Wno-sign-compare", "-ffp-contract=off", "emulate/main.cpp", "-o", program,
				"-lpthread")...)
			if out, err := compile.CombinedOutput(); err != nil {
				t.Fatalf("compile: %v\n%s", err, out)
			}
			out, err := exec.Command(program, c.args...).CombinedOutput()
			if strings.Contains(string(out), "FATAL: ThreadSanitizer: unexpected memory mapping") { // too random for it
				out, err = exec.Command("setarch", append([]string{"-R", program}, c.args...)...).CombinedOutput()
			}
			if err != nil || string(out) != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, out, c.want)
			}
		})
	}
}

// onFibers is what the program prints. A star marks a case that also runs under ThreadSanitizer.
const onFibers = `
  f32 ffpp, 250x16, 1 ranks, 2 passes of 16 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 ffff, 250x33, 1 ranks, 1 passes of 5 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
* f32 ffpp, 250x45, 3 ranks, 2 passes of 6 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 ffpp, 5x14, 4 ranks, 4 passes of 3 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 ffpp, 130x36, 2 ranks, 2 passes of 9 sweeps, 1 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 ffpp, 260x24, 1 ranks, 2 passes of 16 sweeps, 1 and 2 tiles, 16 rows a warp: 0 rows, 0 sums, 0 words wrong
* f32 ffff, 131x24, 1 ranks, 1 passes of 5 sweeps, 2 and 1 tiles, 16 rows a warp: 0 rows, 0 sums, 0 words wrong
* f32 ffpp, 250x45, 3 ranks, 3 passes of 7 sweeps, 1 and 2 tiles, 24 rows a warp: 0 rows, 0 sums, 0 words wrong
  f32 ffpp, 130x80, 2 ranks, 5 passes of 4 sweeps, halo 16, 3 blocks of 3 pipelines: 0 rows, 0 sums, 0 words wrong
* f32 ffpp, 131x80, 2 ranks, 5 passes of 4 sweeps, halo 16, 4 and 4 tiles, 16 rows a warp: 0 rows, 0 sums, 0 words wrong
  f32 ffff, 515x40, 1 ranks, 2 passes of 1 sweeps, 2 blocks: 0 rows, 0 sums, 0 words wrong
  b32 ffpp, 250x16, 1 ranks, 2 passes of 16 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  b32 ffpp, 250x45, 3 ranks, 4 passes of 6 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  b32 ffff, 250x33, 1 ranks, 3 passes of 2 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
* b32 ffpp, 130x80, 2 ranks, 5 passes of 4 sweeps, halo 16, 3 blocks of 3 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 ffff points, 620x140, 1 ranks, 1 passes of 7 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
* f32 ffpp points, 250x45, 3 ranks, 2 passes of 6 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 nnnn, 250x33, 1 ranks, 1 passes of 16 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 nfnf, 249x41, 2 ranks, 2 passes of 5 sweeps, 2 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 ffff source, 620x90, 1 ranks, 1 passes of 16 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 ffpp source points, 250x50, 3 ranks, 2 passes of 11 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 nnnn source points, 256x50, 2 ranks, 2 passes of 8 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
* f32 fnfn source points, 130x20, 1 ranks, 3 passes of 2 sweeps, 2 blocks of 4 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 ppff points, 515x40, 2 ranks, 3 passes of 1 sweeps, 2 blocks: 0 rows, 0 sums, 0 words wrong
  f32 pppp source points, 514x40, 2 ranks, 3 passes of 1 sweeps, 2 blocks: 0 rows, 0 sums, 0 words wrong
  f32 pppp source points, 3x12, 1 ranks, 3 passes of 1 sweeps, 1 blocks: 0 rows, 0 sums, 0 words wrong
* f32 nnnn source points, 513x50, 2 ranks, 2 passes of 1 sweeps, 3 blocks: 0 rows, 0 sums, 0 words wrong
* f32 ffpp values points, 130x50, 1 ranks, 1 passes of 11 sweeps, 1 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 ffpp values points, 250x50, 3 ranks, 2 passes of 15 sweeps, 1 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 nfnf values, 620x60, 1 ranks, 1 passes of 16 sweeps, 2 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 fnfn values points, 130x20, 1 ranks, 2 passes of 3 sweeps, 2 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  f32 pppp values points, 514x40, 2 ranks, 2 passes of 1 sweeps, 2 blocks: 0 rows, 0 sums, 0 words wrong
  f64 ffpp, 150x56, 3 ranks, 2 passes of 12 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
* f64 ffff, 140x30, 1 ranks, 1 passes of 14 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
* f64 ffpp, 129x32, 2 ranks, 2 passes of 8 sweeps, 2 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
* f64 ffpp, 131x24, 1 ranks, 2 passes of 12 sweeps, 1 and 2 tiles, 8 rows a warp: 0 rows, 0 sums, 0 words wrong
  f64 ffpp, 131x80, 2 ranks, 5 passes of 4 sweeps, halo 16, 8 and 8 tiles, 8 rows a warp: 0 rows, 0 sums, 0 words wrong
  f64 nfff points, 310x130, 1 ranks, 1 passes of 12 sweeps, 1 blocks of 3 pipelines: 0 rows, 0 sums, 0 words wrong
* f64 nnpp, 150x56, 3 ranks, 2 passes of 7 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  f64 fffn source points, 310x90, 2 ranks, 1 passes of 12 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
* f64 nnpp source points, 140x24, 1 ranks, 2 passes of 14 sweeps, 1 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
  f64 ppnn points, 260x30, 1 ranks, 2 passes of 1 sweeps, 1 blocks: 0 rows, 0 sums, 0 words wrong
  f64 ppfn source points, 516x50, 2 ranks, 2 passes of 1 sweeps, 2 blocks: 0 rows, 0 sums, 0 words wrong
  f64 nnpp values points, 150x50, 2 ranks, 1 passes of 16 sweeps, 2 blocks of 1 pipelines: 0 rows, 0 sums, 0 words wrong
  f64 ffnn values, 140x30, 1 ranks, 2 passes of 6 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  f64 nnff values points, 516x50, 2 ranks, 2 passes of 1 sweeps, 2 blocks: 0 rows, 0 sums, 0 words wrong
  b64 ffpp, 150x56, 3 ranks, 2 passes of 12 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
* b64 ffff, 140x30, 1 ranks, 2 passes of 16 sweeps, 1 blocks of 2 pipelines: 0 rows, 0 sums, 0 words wrong
  b64 ffpp, 131x80, 2 ranks, 5 passes of 4 sweeps, halo 16, 3 blocks of 3 pipelines: 0 rows, 0 sums, 0 words wrong
`

// raced returns the lines of the cases that run under ThreadSanitizer.
func raced(lines string) (out string) {
	for line := range strings.Lines(lines) {
		if strings.HasPrefix(line, "*") {
			out += line
		}
	}
	return out
}

// An event of the emulated driver has passed when its newest record has, as of CUDA. An older one that passes later, in
// a stream that waited, changes nothing.
func TestEventsOnFibers(t *testing.T) {
	devices, err := emulatedAlone(t).Devices()
	if err != nil {
		t.Fatal(err)
	}
	c, err := devices[0].Retain(driver.ScheduleAuto)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	defer func() { must(c.Close()) }()
	must(c.Bind())
	defer func() { must(c.Unbind()) }()
	word, err := c.Alloc(4)
	must(err)
	var streams [2]*driver.Stream
	for i := range streams {
		streams[i], err = c.NewStream(0)
		must(err)
	}
	var events [2]*driver.Event
	for i := range events {
		events[i], err = c.NewEvent(true)
		must(err)
	}
	must(streams[0].Fill(word, 0, 4))
	must(streams[0].WaitValue(word, 1))
	must(events[0].Record(streams[0])) // waits
	must(events[0].Record(streams[1]))
	must(events[1].Record(streams[1]))
	must(streams[1].Synchronize())
	took, err := driver.Elapsed(events[0], events[1])
	must(err)
	must(streams[1].WriteValue(word, 1))
	must(streams[0].Synchronize())
	done, err := events[0].Done()
	must(err)
	if later, err := driver.Elapsed(events[0], events[1]); err != nil || !done || later != took || took < 0 {
		t.Errorf("done %v, after %v and then %v, %v", done, took, later, err)
	}
}
