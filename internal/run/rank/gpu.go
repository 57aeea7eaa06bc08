package rank

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"jacobi/cuda/driver"
	"jacobi/internal/compute/device"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
)

// takeGPU chooses this rank's GPU, if one sweeps, and pins the rank to the cores near it. All ranks call it, because
// they find out together which GPUs are shared.
func (r *run) takeGPU(ctx context.Context) (err error) {
	if r.sweepsOnGPU() {
		readings, err := nodeReadings(device.Policy(r.Config.Device.Select), r.comm.Self(), r.comm.Groups())
		if err != nil {
			return err
		}
		choice, err := r.gpus.Select(r.id.LocalRank, readings)
		if err != nil {
			return err
		}
		r.chosen = &output.GPUReport{Index: choice.Index, Name: choice.Name, UUID: choice.UUID,
			PCIBusID: choice.PCIBusID, Why: choice.Why, Cores: r.pin(choice.Candidate)}
		r.Log.Debug("GPU", zap.Any("gpu", r.chosen))
	}
	r.sole, err = r.soleUse(ctx, r.chosen)
	return err
}

// nodeReadings returns the readings that local rank 0 of self's node took; nil if policy needs none. With readings of
// their own, all ranks of a node might choose the same GPU.
func nodeReadings(policy device.Policy, self roster.Member, groups []roster.Group) ([]device.GPU, error) {
	if policy == device.RoundRobin {
		return nil, nil
	}
	for _, g := range groups { // a rank with local rank 0 is the first of its group
		m := g.First
		if m.LocalRank > 0 || !roster.SharesDevices(m, self) {
			continue
		}
		e, err := extraOf(m)
		if err != nil {
			return nil, err
		}
		if e.Readings == nil {
			return nil, fmt.Errorf("device.select %q: rank %d, the first on this node, has no readings of its GPUs; "+
				"allowed here is %s", policy, m.Rank, device.RoundRobin)
		}
		return e.Readings, nil
	}
	return nil, fmt.Errorf("device.select %q: no rank on this node has local rank 0", policy)
}

// pin keeps this rank on the cores near its GPU and returns them; "" if it was not pinned.
func (r *run) pin(c device.Candidate) string {
	if !r.Config.Device.Pin {
		return ""
	}
	cores, err := r.gpus.Pin(c, r.id.LocalSize)
	switch {
	case errors.Is(err, device.ErrNoNVML):
		r.Log.Sugar().Debugf("not pinned to the cores near GPU %d: %v", c.Index, err)
	case err != nil:
		r.Log.Sugar().Infof("not pinned to the cores near GPU %d: %v", c.Index, err)
	}
	return cores
}

// onGPU names the GPU in an error of the driver.
func (d devices) onGPU(err error) error { return OnGPU(d.chosen, err) }

// OnGPU names a GPU, if it is not nil, in an error of the driver.
func OnGPU(gpu *output.GPUReport, err error) error {
	if _, ok := errors.AsType[*driver.Error](err); gpu == nil || !ok {
		return err
	}
	return fmt.Errorf("GPU %d (%s, %s): %w", gpu.Index, gpu.Name, gpu.UUID, err)
}
