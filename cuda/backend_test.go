package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/backendtest"
)

// gpu is the driver of this machine; noGPU says why there is none.
var (
	gpu   *driver.Driver
	noGPU error
)

// Several ranks of a test share this process, and streams of one wait for those of another. A queue of the GPU that two
// streams share stops at what waits, so there are more queues than a rank of a run asks for.
const queues = "32"

func TestMain(m *testing.M) {
	if err := os.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", queues); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if gpu, noGPU = driver.Open(); noGPU != nil {
		fmt.Printf("NOT RUN, no GPU: all tests of jacobi/cuda that sweep (%v)\n", noGPU)
	} else if err := holdContexts(gpu); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// holdContexts retains the primary context of every GPU until the process ends. Without it the driver would make a new
// context for each case, since a case closes all that it opened; that took most of the time of the suites.
func holdContexts(d *driver.Driver) error {
	devices, err := d.Devices()
	if err != nil {
		return err
	}
	for i := range devices {
		if _, err := devices[i].Retain(driver.ScheduleAuto); err != nil {
			return fmt.Errorf("hold the context of GPU %d: %w", i, err)
		}
	}
	return nil
}

// need returns the driver. It skips the test if there is no GPU, and fails it if the driver has another fault.
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

// The old contents of memory do not matter: rows are padded, and kernels read the padding.
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
	small := backendtest.Case{Mesh: solver.Mesh{NX: 33, NY: 80, DType: solver.Float32}, Ranks: 2, Depth: 8, Passes: 2}
	backendtest.RunCase(t, small, kinds(d, Options{})[0])
	if err := errors.Join(c.Bind(), s.Close(), c.Unbind(), c.Close()); err != nil {
		t.Error(err)
	}
}

// CopyRows copies the same rows into pinned memory, at any offset, as into other memory.
func TestPin(t *testing.T) {
	d := need(t)
	ctx, l := t.Context(), solver.Layout{Mesh: solver.Mesh{NX: 37, NY: 50, DType: solver.Float32},
		Stripe: solver.Stripe{Lo: 1, Hi: 49}, Depth: 1}
	b, err := New(d, l, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := b.Load(ctx, numbered{}); err != nil {
		t.Fatal(err)
	}
	rows := solver.Stripe{Lo: 3, Hi: 40}
	n, at := rows.Rows()*l.Mesh.RowBytes(), 148
	memory, err := unix.Mmap(-1, 0, n+at, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	want, got := make([]byte, n), memory[at:]
	unpin, err := b.Pin(memory)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := b.dev.inPinned(want); ok {
		t.Error("memory of Go passes for pinned")
	}
	if at, ok := b.dev.inPinned(got); !ok || at != 148 {
		t.Errorf("pinned memory lies at %d, %v", at, ok)
	}
	if err := errors.Join(b.CopyRows(ctx, rows, want), b.CopyRows(ctx, rows, got)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) || got[0] != 3 || got[n-1] != 39 || memory[at-1] != 0 {
		t.Errorf("got rows %d to %d, want 3 to 39", got[0], got[n-1])
	}
	if err := errors.Join(unpin(), unix.Munmap(memory)); err != nil {
		t.Error(err)
	}
	if err := b.CopyRows(ctx, rows, want); err != nil {
		t.Error(err)
	}
}

// numbered is a field whose bytes are its row numbers.
type numbered struct{}

func (numbered) Row(y int, dst []byte) error {
	for i := range dst {
		dst[i] = byte(y)
	}
	return nil
}

// kinds are the backends with and without the kernels that hold a mesh in registers, as they would all meshes of the
// suite.
func kinds(d *driver.Driver, o Options) []backendtest.Kind {
	return []backendtest.Kind{
		{Name: "held", Open: func(l solver.Layout) (solver.Backend, error) { return New(d, l, o) }},
		{Name: "streamed", Open: func(l solver.Layout) (solver.Backend, error) { return withoutHeld(New(d, l, o)) }},
	}
}

// The kernels give the same bits when the driver compiles them from PTX, with a norm of every sweep and of some.
func TestPTX(t *testing.T) {
	d := need(t)
	for _, dtype := range []solver.DType{solver.Float32, solver.Float64} {
		for _, depth := range []int{1, 5, 8, 16} {
			for _, every := range []int{1, 3, 16} {
				for _, u := range []backendtest.Update{{}, {Fixed: true}, {General: true, Source: true, Fixed: true},
					{Weighted: true, Fixed: true}} {
					c := backendtest.Case{Mesh: solver.Mesh{NX: 301, NY: 200, DType: dtype}, Update: u, Ranks: 2,
						Depth: depth, Passes: 3, Norms: solver.EveryNth(every)}
					t.Run(c.String(), func(t *testing.T) { backendtest.RunCase(t, c, kinds(d, Options{PTX: true})...) })
				}
			}
		}
	}
}

// The CUDA backend passes the conformance suite: it computes the same bits as the iteration over the whole mesh.
func TestBackend(t *testing.T) { backendtest.Run(t, kinds(need(t), Options{})...) }

// The backend computes every operator on every wall.
func TestOperators(t *testing.T) { backendtest.RunOperators(t, kinds(need(t), Options{})[0]) }

// The backend computes the weighted operator on every wall.
func TestWeighted(t *testing.T) { backendtest.RunWeighted(t, kinds(need(t), Options{})[0]) }

// The backend does sweeps some of which have no norm.
func TestNorms(t *testing.T) { backendtest.RunNorms(t, kinds(need(t), Options{})...) }

// withoutHeld removes the kernels that hold a mesh in registers.
func withoutHeld(b *Backend, err error) (solver.Backend, error) {
	if err != nil {
		return nil, err
	}
	b.kernels = slices.DeleteFunc(b.kernels, func(k *kernel) bool { return strings.HasPrefix(k.name, "held") })
	return b, nil
}

// The largest meshes that fit into the GPU's registers use tiles of all kinds; the meshes of the suite are small.
func TestLargestHeldMesh(t *testing.T) {
	d := need(t)
	for _, periodic := range []bool{false, true} {
		for _, mesh := range []solver.Mesh{{NX: 2046, NY: 2048, DType: solver.Float32},
			{NX: 2041, NY: 1000, DType: solver.Float32}, {NX: 1030, NY: 1000, DType: solver.Float64}} {
			mesh.Walls = solver.WrapRows(periodic)
			t.Run(fmt.Sprintf("%v/%dx%d/periodic=%v", mesh.DType, mesh.NX, mesh.NY, periodic), func(t *testing.T) {
				c := backendtest.Case{Mesh: mesh, Ranks: 1, Depth: 16, Passes: 1}
				backendtest.RunCase(t, c, kinds(d, Options{})[0])
			})
		}
	}
}

// CopyRate returns a finite positive rate for each GPU and frees its memory.
func TestGPUCopyRate(t *testing.T) {
	devices, err := need(t).Devices()
	if err != nil {
		t.Fatal(err)
	}
	for i := range devices {
		c, err := devices[i].Retain(driver.ScheduleAuto) // so that the memory of a context does not count
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Bind(); err != nil {
			t.Fatal(err)
		}
		var free [3]int64
		var rate float64
		for k := range free { // the driver may keep memory after the first copy
			if k > 0 {
				if rate, err = CopyRate(t.Context(), &devices[i]); err != nil || !(rate > 0) || math.IsInf(rate, 0) {
					t.Fatalf("%v: %v, %v", &devices[i], rate, err)
				}
				if err := c.Bind(); err != nil { // CopyRate leaves the thread without a context
					t.Fatal(err)
				}
			}
			if free[k], _, err = c.Memory(); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%v: %.0f GB/s", &devices[i], rate/1e9)
		if free[2] < free[1] {
			t.Errorf("%v: a copy took %d bytes and kept them", &devices[i], free[1]-free[2])
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		cancel(cause)
		if _, err := CopyRate(ctx, &devices[i]); !errors.Is(err, cause) {
			t.Errorf("after the end of the context: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
