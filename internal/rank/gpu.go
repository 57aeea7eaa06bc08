package rank

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"jacobi/cuda/driver"
	"jacobi/internal/device"
	"jacobi/internal/output"
	"jacobi/internal/roster"
)

// takenGPU is the GPU of a rank.
type takenGPU struct {
	chosen *output.GPUReport // nil if the CPU sweeps
	sole   bool              // no other rank uses the GPU
}

// takeGPU chooses this rank's GPU, if one sweeps, and pins the rank to the cores near it. All ranks call it, because
// they find out together which GPUs are shared.
func (j *joined) takeGPU(ctx context.Context) (taken takenGPU, err error) {
	if j.sweepsOnGPU() {
		readings, err := nodeReadings(device.Policy(j.Config.Device.Select), j.team.Self(), j.team.Groups())
		if err != nil {
			return taken, err
		}
		choice, err := j.gpus.Select(j.id.LocalRank, readings)
		if err != nil {
			return taken, err
		}
		taken.chosen = &output.GPUReport{Index: choice.Index, Name: choice.Name, UUID: choice.UUID,
			PCIBusID: choice.PCIBusID, Why: choice.Why, Cores: j.pin(choice.Candidate)}
		j.Log.Debug("GPU", zap.Any("gpu", taken.chosen))
	}
	taken.sole, err = j.soleUse(ctx, taken.chosen)
	return taken, err
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
func (j *joined) pin(c device.Candidate) string {
	if !j.Config.Device.Pin {
		return ""
	}
	cores, err := j.gpus.Pin(c, j.id.LocalSize)
	switch {
	case errors.Is(err, device.ErrNoNVML):
		j.Log.Sugar().Debugf("not pinned to the cores near GPU %d: %v", c.Index, err)
	case err != nil:
		j.Log.Sugar().Infof("not pinned to the cores near GPU %d: %v", c.Index, err)
	}
	return cores
}

// onGPU names the GPU in an error of the driver.
func (t takenGPU) onGPU(err error) error {
	var fault *driver.Error
	if t.chosen == nil || !errors.As(err, &fault) {
		return err
	}
	return fmt.Errorf("GPU %d (%s, %s): %w", t.chosen.Index, t.chosen.Name, t.chosen.UUID, err)
}
