package rank

import (
	"context"
	"fmt"
	"slices"

	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
)

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
