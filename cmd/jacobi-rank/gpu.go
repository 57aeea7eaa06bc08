package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"jacobi/cuda/driver"
	"jacobi/internal/awake"
	"jacobi/internal/device"
	"jacobi/internal/output"
	"jacobi/internal/roster"
)

// findDevice opens the GPUs as device.backend and device.select say. If the CPU sweeps, r.gpus.WhyCPU is not nil.
func (r *rank) findDevice() (err error) {
	c := r.cfg.Device
	if r.gpus, err = device.Open(device.Options{Backend: c.Backend, Select: device.Policy(c.Select),
		Pin: c.Pin}); err != nil {
		return err
	}
	r.onClose(r.gpus.Close)
	why := r.gpus.WhyCPU
	if why != nil && c.Backend == "auto" && r.id.LocalRank == 0 && !errors.Is(why, driver.ErrNoDriver) &&
		!errors.Is(why, driver.ErrNoDevice) {
		r.log.Sugar().Warnf("no GPU can be used, the CPU sweeps: %v", why)
	}
	return nil
}

// memberExtra is the part of a roster.Member that only this program uses.
type memberExtra struct {
	Cores unix.CPUSet `json:"cores"` // cores that the rank may use
	// Readings of the node's GPUs come from local rank 0 if device.select orders by readings.
	Readings []device.GPU `json:"readings,omitempty"`
}

// extra returns this rank's memberExtra.
func (r *rank) extra() (json.RawMessage, error) {
	cores, err := allowedCores()
	if err != nil {
		return nil, err
	}
	e := memberExtra{Cores: cores}
	if r.id.LocalRank <= 0 && r.cfg.Device.Select != string(device.RoundRobin) { // -1: not known before the join
		e.Readings = r.gpus.Readings
	}
	return json.Marshal(e)
}

// nodeReadings returns the readings that local rank 0 of this node took. With readings of their own, all ranks of a
// node might choose the same GPU.
func (r *rank) nodeReadings() ([]device.GPU, error) {
	if r.cfg.Device.Select == string(device.RoundRobin) {
		return nil, nil
	}
	for _, m := range r.team.Members() {
		if m.LocalRank > 0 || nodeOf(m) != nodeOf(r.team.Self()) {
			continue
		}
		e, err := extraOf(m)
		if err != nil {
			return nil, err
		}
		if e.Readings == nil {
			return nil, fmt.Errorf("device.select %q: rank %d, the first on this node, has no readings of its GPUs; "+
				"allowed here is %s",
				r.cfg.Device.Select, m.Rank, device.RoundRobin)
		}
		return e.Readings, nil
	}
	return nil, fmt.Errorf("device.select %q: no rank on this node has local rank 0", r.cfg.Device.Select)
}

// nodeOf returns a key that identifies the member's node.
func nodeOf(m roster.Member) [2]string { return [2]string{m.Host, m.NodeID} }

// takeGPU chooses this rank's GPU and pins the rank to the cores near it.
func (r *rank) takeGPU(ctx context.Context) error {
	if r.sweepsOnGPU() {
		readings, err := r.nodeReadings()
		if err != nil {
			return err
		}
		choice, err := r.gpus.Select(r.id.LocalRank, readings)
		if err != nil {
			return err
		}
		r.chosen = &output.GPUReport{Index: choice.Index, Name: choice.Name, UUID: choice.UUID,
			PCIBusID: choice.PCIBusID, Why: choice.Why, Cores: r.pin(choice.Candidate)}
		r.log.Debug("GPU", zap.Any("gpu", r.chosen))
	}
	return r.findSharing(ctx)
}

// pin keeps this rank on the cores near its GPU and returns them; "" if it was not pinned.
func (r *rank) pin(c device.Candidate) string {
	if !r.cfg.Device.Pin {
		return ""
	}
	cores, err := r.gpus.Pin(c, r.id.LocalSize)
	switch {
	case errors.Is(err, device.ErrNoNVML):
		r.log.Sugar().Debugf("not pinned to the cores near GPU %d: %v", c.Index, err)
	case err != nil:
		r.log.Sugar().Infof("not pinned to the cores near GPU %d: %v", c.Index, err)
	}
	return cores
}

// findSharing finds out whether another rank uses this rank's GPU. Rank 0 warns of nodes with fewer GPUs than ranks
// that use them.
func (r *rank) findSharing(ctx context.Context) error {
	var uuid []byte
	if r.chosen != nil {
		uuid = []byte(r.chosen.UUID)
	}
	ctx, cancel := awake.WithTimeout(ctx, r.cfg.Halo.Timeout)
	defer cancel()
	uuids, err := r.team.Gather(ctx, "gpus", uuid)
	if err != nil {
		return err
	}
	var answer []byte
	if r.id.Rank == 0 {
		for _, warning := range sharing(r.team.Members(), uuids) {
			r.log.Warn(warning)
		}
		if answer, err = json.Marshal(takenTwice(uuids)); err != nil {
			return err
		}
	}
	if answer, err = r.team.Broadcast(ctx, "shared gpus", answer); err != nil {
		return err
	}
	var shared []string
	if err := json.Unmarshal(answer, &shared); err != nil {
		return fmt.Errorf("shared GPUs: %w", err)
	}
	r.soleGPU = r.chosen != nil && r.chosen.UUID != "" && !slices.Contains(shared, r.chosen.UUID)
	return nil
}

// takenTwice returns the UUIDs of GPUs that several ranks use. It ignores the ranks' nodes, because containers on one
// machine look like different nodes.
func takenTwice(uuids [][]byte) []string {
	ranks, shared := map[string]int{}, []string{}
	for _, uuid := range uuids {
		if ranks[string(uuid)]++; len(uuid) > 0 && ranks[string(uuid)] == 2 {
			shared = append(shared, string(uuid))
		}
	}
	return shared
}

// sharing returns a warning for each node with fewer GPUs than ranks that use them. uuids has the UUID of each rank's
// GPU; it is empty for a rank that sweeps on the CPU.
func sharing(members []roster.Member, uuids [][]byte) (warnings []string) {
	type use struct {
		host  string
		ranks int
		gpus  map[string]bool
	}
	uses := map[[2]string]*use{}
	var order []*use
	for i, uuid := range uuids {
		if len(uuid) == 0 {
			continue
		}
		u := uses[nodeOf(members[i])]
		if u == nil {
			u = &use{host: members[i].Host, gpus: map[string]bool{}}
			uses[nodeOf(members[i])] = u
			order = append(order, u)
		}
		u.ranks++
		u.gpus[string(uuid)] = true
	}
	for _, u := range order {
		if n := len(u.gpus); n < u.ranks {
			gpus := "1 GPU"
			if n > 1 {
				gpus = fmt.Sprintf("%d GPUs", n)
			}
			warnings = append(warnings, fmt.Sprintf("%d ranks share %s on %s", u.ranks, gpus, u.host))
		}
	}
	return warnings
}

// sweepsOnGPU reports whether a GPU sweeps this rank's stripe.
func (r *rank) sweepsOnGPU() bool { return r.gpus.WhyCPU == nil }

// onGPU names this rank's GPU in an error of the driver.
func (r *rank) onGPU(err error) error {
	var fault *driver.Error
	if r.chosen == nil || !errors.As(err, &fault) {
		return err
	}
	return fmt.Errorf("GPU %d (%s, %s): %w", r.chosen.Index, r.chosen.Name, r.chosen.UUID, err)
}
