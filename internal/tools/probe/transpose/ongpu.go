package transpose

import (
	"context"
	"errors"
	"fmt"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/tools/probe/gpu"
)

// tries is how often a kernel runs; the fastest run counts.
const tries = 5

// kernels are those of a GPU, in the order in which they are taught, and the side of the tile that a block moves.
var kernels = []struct {
	name string
	tile int
	copy bool
}{
	{"probe_copy", 32, true},
	{"probe_copy_shared", 32, true},
	{"probe_transpose_naive", 32, false},
	{"probe_transpose_coalesced", 32, false},
	{"probe_transpose_padded", 32, false},
	{best, bestTile, false},
}

// The kernel that the transpose over several GPUs uses.
const (
	best     = "probe_transpose_wide"
	bestTile = 64
)

// part is the argument of the kernels, Part of probe_tile.cuh.
type part struct {
	in, out           driver.DevicePtr
	inPitch, outPitch int64 // values
	nx, ny            int32
}

// kernel is a kernel with its argument.
type kernel struct {
	*driver.Function
	arg  *part
	args *driver.Args
	tile int
}

func newKernelOf(m *driver.Module, name string, tile int) (*kernel, error) {
	f, err := m.Function(name)
	if err != nil {
		return nil, err
	}
	k := &kernel{Function: f, arg: new(part), tile: tile}
	k.args, err = f.Args(k.arg)
	return k, err
}

// launch queues the kernel for p on s.
func (k *kernel) launch(s *driver.Stream, p part) error {
	const threads = 256
	*k.arg = p
	blocks := func(n int32) int { return (int(n) + k.tile - 1) / k.tile }
	return k.Launch(s, driver.Dim{X: blocks(p.nx), Y: blocks(p.ny)}, driver.Dim{X: threads}, 0, k.args)
}

// OnGPU measures all kernels on a GPU, the driver's copy of the same bytes first.
func OnGPU(ctx context.Context, v *driver.Device, m Matrix) (all []Kernel, err error) {
	g, err := gpu.Open(v)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if all, err = onGPU(ctx, g, m); err != nil {
		return nil, fmt.Errorf("%v: %w", v, err)
	}
	return all, nil
}

func onGPU(ctx context.Context, g *gpu.GPU, m Matrix) ([]Kernel, error) {
	s, err := g.Stream()
	if err != nil {
		return nil, err
	}
	module, err := g.Context.Load(cuda.ProbeModule(g.Device))
	if err != nil {
		return nil, err
	}
	var p [2]driver.DevicePtr
	for i := range p {
		if p[i], err = g.Alloc(m.Bytes()); err != nil {
			return nil, err
		}
	}
	host := make([]byte, m.Bytes())
	m.fill(host, 0, m.NY)
	if err := g.Context.CopyToDevice(p[0], host); err != nil {
		return nil, err
	}
	took, err := g.Fastest(ctx, s, tries, func() error { return s.CopyOnDevice(p[1], p[0], int(m.Bytes())) })
	if err != nil {
		return nil, err
	}
	copied := took.Seconds()
	all := []Kernel{newKernel("copy by the driver", m.Bytes(), copied, copied)}
	for _, k := range kernels {
		f, err := newKernelOf(module, k.name+m.suffix(), k.tile)
		if err != nil {
			return nil, err
		}
		arg := part{in: p[0], out: p[1], inPitch: int64(m.NX), outPitch: int64(m.NY), nx: int32(m.NX), ny: int32(m.NY)}
		check := func() error { return m.checkTransposed(host, 0, m.NX) }
		if k.copy {
			arg.outPitch, check = int64(m.NX), func() error { return m.checkCopied(host) }
		}
		if err := s.Fill(p[1], 0xff, int(m.Bytes())); err != nil {
			return nil, err
		}
		took, err := g.Fastest(ctx, s, tries, func() error { return f.launch(s, arg) })
		if err != nil {
			return nil, err
		}
		if err := g.Context.CopyFromDevice(host, p[1]); err != nil {
			return nil, err
		}
		if err := check(); err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		all = append(all, newKernel(k.name, m.Bytes(), took.Seconds(), copied))
	}
	return all, nil
}
