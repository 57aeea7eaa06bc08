package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/cpu"
	"jacobi/solver"
)

// device is what sweeps this rank's stripe: a GPU, or the CPU where gpu is nil.
type device struct {
	driver *driver.Driver
	index  int
}

// chooseDevice finds the device for device.backend and this rank's place on its node. A nil device is the CPU.
func (r *rank) chooseDevice() (*device, error) {
	if r.cfg.Device.Backend == "cpu" {
		return nil, nil
	}
	d, err := driver.Open()
	if err == nil {
		var devices []driver.Device
		if devices, err = d.Devices(); err == nil {
			index := r.id.LocalRank % len(devices)
			if r.id.LocalSize > len(devices) && r.id.LocalRank == 0 {
				r.log.Sugar().Warnf("%d ranks share %d GPUs of this node", r.id.LocalSize, len(devices))
			}
			return &device{driver: d, index: index}, nil
		}
	}
	if r.cfg.Device.Backend == "cuda" {
		return nil, fmt.Errorf("device.backend \"cuda\": %w; allowed here are auto and cpu", err)
	}
	if !errors.Is(err, driver.ErrNoDriver) && !errors.Is(err, driver.ErrNoDevice) {
		r.log.Sugar().Warnf("no GPU can be used, the CPU sweeps: %v", err)
	}
	return nil, nil
}

// name returns the kind of a device.
func (d *device) name() string {
	if d == nil {
		return "cpu"
	}
	return "cuda"
}

// preferredDepth returns the halo depth that suits the device.
func (d *device) preferredDepth(m solver.Mesh, minRows int) int {
	if d == nil {
		return cpu.PreferredDepth(m, minRows)
	}
	return cuda.PreferredDepth(m, minRows)
}

// maxSweeps returns the most sweeps of a block on the device.
func (d *device) maxSweeps(m solver.Mesh) int {
	if d == nil {
		return math.MaxInt32 // whatever the depth
	}
	return cuda.MaxSweeps(m.DType)
}

// openBackend opens the backend on the device that was chosen before the ranks met.
func (r *rank) openBackend(context.Context) error {
	if r.device != nil {
		b, err := cuda.New(r.device.driver, r.layout, cuda.Options{Device: r.device.index, Timeout: r.cfg.Halo.Timeout})
		if err != nil {
			return err
		}
		r.backend, r.gpu, r.describe = b, b, b.Describe()
		r.onClose(b.Close)
		return nil
	}
	kernel := r.cfg.Device.Kernel
	if kernel == "auto" {
		kernel = ""
	}
	b, err := cpu.New(r.layout, cpu.Options{Threads: r.threads(), Kernel: kernel})
	if err != nil {
		return err
	}
	r.backend, r.describe = b, b.Describe()
	r.onClose(b.Close)
	return nil
}

// threads returns how many threads of the CPU this rank keeps busy.
func (r *rank) threads() int {
	switch {
	case r.device != nil:
		return 1
	case r.cfg.Device.Threads > 0:
		return r.cfg.Device.Threads
	default:
		return max(1, runtime.NumCPU()/r.id.LocalSize)
	}
}
