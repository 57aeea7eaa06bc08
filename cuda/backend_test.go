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

// The CUDA backend passes the suite of all backends: the same bits as the iteration over the whole mesh.
func TestBackend(t *testing.T) {
	d := need(t)
	backendtest.Run(t, func(l solver.Layout) (solver.Backend, error) { return New(d, l, Options{}) })
}
