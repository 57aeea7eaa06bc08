package cuda

import (
	_ "embed"

	"jacobi/cuda/driver"
)

// The kernels of launcher probe, as those in kernel.go.
var (
	//go:embed kernels/probe.ptx.gz
	probePTX []byte
	//go:embed kernels/probe_90.cubin.gz
	probe90 []byte
)

// ProbeModule returns the module of the probe's kernels for a GPU.
func ProbeModule(d *driver.Device) []byte {
	if d.Major == 9 && d.Minor == 0 {
		return probe90
	}
	return probePTX
}
