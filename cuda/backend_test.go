package cuda

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/backendtest"
)

// gpu is the driver of this machine; noGPU says why there is none.
var (
	gpu   *driver.Driver
	noGPU error
)

func TestMain(m *testing.M) {
	if gpu, noGPU = driver.Open(); noGPU != nil {
		fmt.Printf("NOT RUN, no GPU: all tests of jacobi/cuda that sweep (%v)\n", noGPU)
	}
	os.Exit(m.Run())
}

// need skips a test without a GPU; any other fault of the driver fails it.
func need(t *testing.T) *driver.Driver {
	t.Helper()
	switch {
	case noGPU == nil:
		return gpu
	case errors.Is(noGPU, driver.ErrNoDriver), errors.Is(noGPU, driver.ErrNoDevice):
		t.Skipf("NOT RUN, no GPU: %v", noGPU)
	default:
		t.Fatal(noGPU)
	}
	return nil
}

// What memory held before does not matter: rows are padded, and kernels read the padding.
func TestOldMemoryDoesNotMatter(t *testing.T) {
	d := need(t)
	devices, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	c, err := devices[0].Retain(driver.ScheduleAuto)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Bind(); err != nil {
		t.Fatal(err)
	}
	s, err := c.NewStream(0)
	if err != nil {
		t.Fatal(err)
	}
	const n = 256 << 20
	p, err := c.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Fill(p, 0xff, n), s.Synchronize(), c.Free(p)); err != nil { // every value a NaN
		t.Fatal(err)
	}
	backendtest.RunCase(t, func(l solver.Layout) (solver.Backend, error) { return New(d, l, Options{}) },
		backendtest.Case{Mesh: solver.Mesh{NX: 33, NY: 80, DType: solver.Float32}, Ranks: 2, Depth: 8, Blocks: 2})
	if err := errors.Join(c.Bind(), s.Close(), c.Unbind(), c.Close()); err != nil {
		t.Error(err)
	}
}

// The kernels as the driver finishes them give the same bits too.
func TestPTX(t *testing.T) {
	d := need(t)
	for _, dtype := range []solver.DType{solver.Float32, solver.Float64} {
		for _, depth := range []int{1, 5, 8, 16} {
			c := backendtest.Case{Mesh: solver.Mesh{NX: 301, NY: 200, DType: dtype}, Ranks: 2, Depth: depth, Blocks: 3}
			t.Run(fmt.Sprintf("%v/depth=%d", dtype, depth), func(t *testing.T) {
				backendtest.RunCase(t, func(l solver.Layout) (solver.Backend, error) { return New(d, l, Options{PTX: true}) }, c)
			})
		}
	}
}

// The CUDA backend passes the suite of all backends: the same bits as the iteration over the whole mesh.
func TestBackend(t *testing.T) {
	d := need(t)
	backendtest.Run(t, func(l solver.Layout) (solver.Backend, error) { return New(d, l, Options{}) })
}
