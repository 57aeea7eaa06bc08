package rank

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"jacobi/cuda/driver"
	"jacobi/internal/base/awake"
	"jacobi/internal/compute/device"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/setup"
)

// openDevices opens the GPUs of this node as device.backend and device.select say.
func (s *session) openDevices(context.Context) error {
	if s.spare() {
		return nil
	}
	c := s.Config.Device
	gpus, err := device.Open(device.Options{Backend: c.Backend, Select: device.Policy(c.Select), Pin: c.Pin})
	if err != nil {
		return err
	}
	s.open.add(gpus.Close)
	s.gpus = gpus
	why := gpus.WhyCPU
	if why != nil && c.Backend == "auto" && s.Origin.LocalRank == 0 && !errors.Is(why, driver.ErrNoDriver) &&
		!errors.Is(why, driver.ErrNoDevice) {
		s.Log.Sugar().Warnf("no GPU can be used, the CPU sweeps: %v", why)
	}
	if s.sweepsOnGPU() { // before a context begins: while the driver creates one, it makes callers wait
		offered := setup.GPUsOf(gpus.Devices)
		s.offered = &offered
	}
	choice, known := s.foreseen()
	if !known {
		return gpus.Read()
	}
	gpus.Foresee(choice.Candidate)
	s.beginContext(choice.Index)
	return nil
}

// foreseen returns the GPU that this rank will take, if it is known already. Jobs of a session take it once for all,
// other policies than round-robin need the readings of all ranks, and the local rank may be known only once all have
// joined.
func (s *session) foreseen() (choice device.Choice, known bool) {
	if s.Ordered || s.Task != nil || !s.sweepsOnGPU() || s.Origin.LocalRank < 0 ||
		device.Policy(s.Config.Device.Select) != device.RoundRobin {
		return choice, false
	}
	choice, err := s.gpus.Select(s.Origin.LocalRank, nil)
	return choice, err == nil
}

// beginContext begins to create the context of the GPU that this rank will take, while it joins the others and
// evaluates its rows. An error is left to takers of the GPU.
func (s *session) beginContext(gpu int) {
	made := make(chan func() error, 1)
	go func() {
		if c, err := s.gpus.Devices[gpu].Retain(driver.ScheduleAuto); err == nil {
			made <- c.Close
		}
		close(made)
	}()
	s.open.add(func() error {
		if end := <-made; end != nil {
			return end()
		}
		return nil
	})
}

// sweepsOnGPU reports whether a GPU sweeps this rank's stripe.
func (d *devices) sweepsOnGPU() bool { return d.gpus.WhyCPU == nil }

// device returns the kind of this rank's device.
func (d *devices) device() setup.Device { return setup.DeviceOf(d.sweepsOnGPU()) }

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
	r.taken = err == nil
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

// soleUse reports whether no other rank uses the GPU that this rank has chosen; false if the CPU sweeps. Rank 0 warns
// of nodes with fewer GPUs than ranks that use them.
func (r *run) soleUse(ctx context.Context, chosen *output.GPUReport) (bool, error) {
	uuid := ""
	if chosen != nil {
		uuid = chosen.UUID
	}
	ctx, cancel := awake.WithTimeout(ctx, r.Config.Halo.Timeout)
	defer cancel()
	shared, err := roster.DecideOn(ctx, r.comm, "gpu", uuid, func(uuids []string) ([]string, error) {
		for _, warning := range sharing(r.comm.Members(), uuids) {
			r.Log.Warn(warning)
		}
		return takenTwice(uuids), nil
	})
	if err != nil {
		return false, err
	}
	return chosen != nil && chosen.UUID != "" && !slices.Contains(shared, chosen.UUID), nil
}

// takenTwice returns the UUIDs of GPUs that several ranks use. It ignores the ranks' nodes, because containers on one
// machine look like different nodes.
func takenTwice(uuids []string) []string {
	ranks, shared := map[string]int{}, []string{}
	for _, uuid := range uuids {
		if ranks[uuid]++; uuid != "" && ranks[uuid] == 2 {
			shared = append(shared, uuid)
		}
	}
	return shared
}

// sharing returns a warning for each node with fewer GPUs than ranks that use them. uuids has the UUID of each rank's
// GPU; it is empty for a rank that sweeps on the CPU.
func sharing(members []roster.Member, uuids []string) (warnings []string) {
	type use struct {
		first roster.Member
		ranks int
		gpus  map[string]bool
	}
	var uses []*use
	for i, uuid := range uuids {
		if uuid == "" {
			continue
		}
		at := slices.IndexFunc(uses, func(u *use) bool { return roster.SharesDevices(u.first, members[i]) })
		if at < 0 {
			at = len(uses)
			uses = append(uses, &use{first: members[i], gpus: map[string]bool{}})
		}
		u := uses[at]
		u.ranks++
		u.gpus[uuid] = true
	}
	for _, u := range uses {
		if n := len(u.gpus); n < u.ranks {
			gpus := "1 GPU"
			if n > 1 {
				gpus = fmt.Sprintf("%d GPUs", n)
			}
			warnings = append(warnings, fmt.Sprintf("%d ranks share %s on %s", u.ranks, gpus, u.first.Host))
		}
	}
	return warnings
}
