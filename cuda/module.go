package cuda

import (
	_ "embed"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// The modules of kernels: PTX for any GPU of compute capability 8.0 and up, and machine code for 9.0. All are packed by
// gzip.
var (
	//go:embed kernels/sweep.ptx.gz
	sweepPTX []byte
	//go:embed kernels/sweep_90.cubin.gz
	sweep90 []byte
	//go:embed kernels/terms.ptx.gz
	termsPTX []byte
	//go:embed kernels/terms_90.cubin.gz
	terms90 []byte
	//go:embed kernels/weighted.ptx.gz
	weightedPTX []byte
	//go:embed kernels/weighted_90.cubin.gz
	weighted90 []byte
	//go:embed kernels/multigrid.ptx.gz
	multigridPTX []byte
	//go:embed kernels/multigrid_90.cubin.gz
	multigrid90 []byte
	//go:embed kernels/weighted_levels.ptx.gz
	weightedLevelsPTX []byte
	//go:embed kernels/weighted_levels_90.cubin.gz
	weightedLevels90 []byte
	//go:embed kernels/measure.ptx.gz
	measurePTX []byte
	//go:embed kernels/measure_90.cubin.gz
	measure90 []byte
	//go:embed kernels/zone.ptx.gz
	zonePTX []byte
	//go:embed kernels/zone_90.cubin.gz
	zone90 []byte
	//go:embed kernels/probe.ptx.gz
	probePTX []byte
	//go:embed kernels/probe_90.cubin.gz
	probe90 []byte
)

// code is a module. The machine code loads at once and is up to 7% faster than what drivers of CUDA 13 compile from the
// PTX; see docs/notebook/gpu-deep-kernel.md.
type code struct{ ptx, machine []byte }

// on returns the code for a GPU, as PTX if ptx is set.
func (c code) on(d *driver.Device, ptx bool) []byte {
	if !ptx && d.Major == 9 && d.Minor == 0 {
		return c.machine
	}
	return c.ptx
}

// sweepsOf returns the kernels of sweeps for a layout: those without and with terms, and those of weighted points.
func sweepsOf(l solver.Layout) code {
	switch {
	case plain(l):
		return code{sweepPTX, sweep90}
	case l.Operator.Weighted:
		return code{weightedPTX, weighted90}
	}
	return code{termsPTX, terms90}
}

// levelsCode returns the kernels of multigrid.
func levelsCode(weighted bool) code {
	if weighted {
		return code{weightedLevelsPTX, weightedLevels90}
	}
	return code{multigridPTX, multigrid90}
}

// ProbeModule returns the module of the probe's kernel for a GPU.
func ProbeModule(d *driver.Device) []byte { return code{probePTX, probe90}.on(d, false) }

// call is a kernel with its argument.
type call struct {
	f                       *driver.Function
	args                    *driver.Args
	blocks, threads, shared int
}

// newCall returns a kernel of a module with its argument, for blocks of some threads.
func newCall(m *driver.Module, name string, argument any, threads int) (c call, err error) {
	c.threads = threads
	if c.f, err = m.Function(name); err != nil {
		return c, err
	}
	c.args, err = c.f.Args(argument)
	return c, err
}

func (c call) launch(s *driver.Stream) error {
	if c.blocks == 0 {
		return nil
	}
	return c.f.Launch(s, driver.Dim{X: c.blocks}, driver.Dim{X: c.threads}, c.shared, c.args)
}

// launchAll puts calls into a stream.
func launchAll(s *driver.Stream, calls []call) error {
	for _, c := range calls {
		if err := c.launch(s); err != nil {
			return err
		}
	}
	return nil
}
