package setup

import (
	"jacobi/configs"
	"jacobi/cuda"
	"jacobi/internal/compute/cpu"
	cpulevels "jacobi/internal/compute/cpu/levels"
	"jacobi/solver"
)

// Device is the kind of a rank's device, as device.backend and the roster name it.
type Device string

// The devices.
const (
	CPU Device = "cpu"
	GPU Device = "cuda"
)

// DeviceOf returns the device of a rank that a GPU sweeps, or the CPU.
func DeviceOf(onGPU bool) Device {
	if onGPU {
		return GPU
	}
	return CPU
}

// Passes returns the halo depth that suits the device if the lowest stripe has minRows, and the most sweeps that the
// device does in a pass.
func (d Device) Passes(m solver.Mesh, o solver.Operator, minRows, normEvery int) (depth, sweeps int) {
	if d == GPU {
		return cuda.PreferredDepth(m, o, minRows, normEvery), cuda.MaxSweeps(m)
	}
	return cpu.PreferredDepth(m, minRows), cpu.MaxSweeps(m)
}

// Bytes returns the memory that the method of a rank takes on a device. o is that of the sweeps of a CPU.
func (s *Setup) Bytes(c configs.Config, rank int, d Device, o cpu.Options) (bytes int64, err error) {
	peers := d == GPU && s.Ranks > 1 && c.Halo.Transport != "nats"
	switch {
	case s.Levels == nil && d == GPU:
		return cuda.MemoryBytes(s.Layout(rank), peers), nil
	case s.Levels == nil:
		return cpu.MemoryBytes(s.Layout(rank), o)
	}
	levels := s.LevelLayout(rank)
	bytesOf, cgBytes := cpulevels.MemoryBytes, cpulevels.CGBytes
	if d == GPU {
		bytesOf, cgBytes = cuda.LevelsBytes, cuda.CGBytes
	}
	bytes = bytesOf(levels)
	if peers {
		bytes += cuda.WindowBytes(levels, s.Ranks)
	}
	if s.MayAccelerate() {
		bytes += cgBytes(levels)
	}
	return bytes, nil
}

// MayAccelerate reports whether conjugate gradients may begin: in cycles with weights of points. Others are never slow.
func (s *Setup) MayAccelerate() bool { return s.Levels != nil && s.Operator.Weighted }
