package e2e

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"jacobi/cuda/emulate/emulatetest"
	"jacobi/internal/compute/cpu/kernel"
)

// materials is a problem with a hole, two materials, a screening of points, a Robin wall and fixed points.
var materials = []string{"grid.nx=140", "grid.ny=97", "solver.relative_tolerance=1e-9", "solver.max_iterations=100",
	"problem.coefficient=(x-0.6)**2 + (y-0.5)**2 < 0.02 ? 0 : x < 0.3 ? 100 : 1", "problem.left=1",
	"problem.right=robin(2, y)", "problem.top=neumann(0)", "problem.bottom=0",
	"problem.screening=y < 0.2 ? 3 : 0", "problem.source=x", "problem.initial=0.5",
	"problem.fixed=abs(x-0.4) < 0.01 && y > 0.7"}

// With coefficients, both methods give the same bits for any ranks, transport and kernel, and after a restart.
func TestSameBitsWithMaterials(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"multigrid", "jacobi"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			keys := append(materials[:len(materials):len(materials)], "solver.method="+method, "grid.dtype=float64",
				"device.backend=cpu")
			want, _ := solve(t, append(set(append(keys, "device.kernel=portable")...), "-np", "1")...)
			if method == "multigrid" && (want.reason != "converged" || want.sweeps > 12) {
				t.Fatalf("%d cycles (%s)", want.sweeps, want.reason)
			}
			ways := [][]string{{"2", "halo.transport=nats"}, {"3", "halo.transport=p2p"}, {"8", "halo.transport=nats"}}
			for _, name := range kernel.Names() {
				ways = append(ways, []string{"1", "device.kernel=" + name})
			}
			for _, w := range ways {
				if got, _ := solve(t, append(set(append(keys, w[1])...), "-np", w[0])...); got != want {
					t.Errorf("%q: %d (%s), field %s; want %d (%s), %s; histories equal: %v", w, got.sweeps, got.reason,
						got.sha, want.sweeps, want.reason, want.sha, got.history == want.history)
				}
			}
			dir := filepath.Join(t.TempDir(), "checkpoints")
			part := append(keys, "checkpoint.every=2", "checkpoint.dir="+dir, "solver.max_iterations=4")
			solve(t, append(set(part...), "-np", "2")...)
			got, r := solve(t, append(set(keys...), "-np", "3", "--resume", dir)...)
			if got != want || r.ResumedAfter != 4 {
				t.Errorf("resumed after %d: %d, field %s; want %d, %s; histories equal: %v", r.ResumedAfter, got.sweeps,
					got.sha, want.sweeps, want.sha, got.history == want.history)
			}
		})
	}
}

// GPUs give the same bits as CPUs.
func TestSameBitsWithMaterialsOnGPUs(t *testing.T) {
	needGPU(t)
	for _, method := range []string{"multigrid", "jacobi"} {
		for _, transport := range []string{"p2p", "nats"} {
			t.Run(method+"/"+transport, func(t *testing.T) {
				t.Parallel() // a process on a GPU starts slowly
				materialsOnGPUs(t, nil, []string{"1", "2", "3"}, "solver.method="+method, "halo.transport="+transport)
			})
		}
	}
}

// So does the CPU where it runs their kernels.
func TestSameBitsWithMaterialsOnEmulatedGPUs(t *testing.T) {
	t.Parallel()
	materialsOnGPUs(t, libraryPath(emulatetest.Build(t)), []string{"1", "2"}, "solver.method=multigrid")
}

func materialsOnGPUs(t *testing.T, env, ranks []string, more ...string) {
	t.Helper()
	keys := append(materials[:len(materials):len(materials)], append(more, "grid.dtype=float64")...)
	want, _ := solve(t, append(set(append(keys, "device.backend=cpu")...), "-np", "1")...)
	sameOnGPUs(t, env, keys, want, ranks)
}

// A wall of two layers, with the interface halfway between points, has the flux of its resistances in series.
func TestLayeredWall(t *testing.T) {
	t.Parallel()
	for _, contrast := range []float64{1, 1000, 1e6} {
		_, r := solve(t, append(set(cycling("grid.nx=66", "grid.ny=33", "problem.left=0", "problem.right=1",
			"problem.top=neumann(0)", "problem.bottom=neumann(0)", "solver.relative_tolerance=1e-12",
			fmt.Sprintf("problem.coefficient=x < 0.5 ? %g : 1", contrast))...), "-np", "2")...)
		want := 32. / 65 / (0.5/contrast + 0.5) // by the height of the wall
		for side, want := range map[string]float64{"left": -want, "right": want} {
			if got := *r.Results.Flux[side]; !(math.Abs(got-want) < 1e-9*math.Abs(want)) {
				t.Errorf("contrast %g, %s: flux %.12g, want %.12g", contrast, side, got, want)
			}
		}
	}
}
