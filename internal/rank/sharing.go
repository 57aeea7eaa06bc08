package rank

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"jacobi/internal/awake"
	"jacobi/internal/output"
	"jacobi/internal/roster"
)

// soleUse reports whether no other rank uses the GPU that this rank has chosen; false if the CPU sweeps. Rank 0 warns
// of nodes with fewer GPUs than ranks that use them.
func (j *joined) soleUse(ctx context.Context, chosen *output.GPUReport) (bool, error) {
	var uuid []byte
	if chosen != nil {
		uuid = []byte(chosen.UUID)
	}
	ctx, cancel := awake.WithTimeout(ctx, j.Config.Halo.Timeout)
	defer cancel()
	uuids, err := j.team.Gather(ctx, "gpus", uuid)
	if err != nil {
		return false, err
	}
	var answer []byte
	if j.id.Rank == 0 {
		for _, warning := range sharing(j.team.Members(), uuids) {
			j.Log.Warn(warning)
		}
		if answer, err = json.Marshal(takenTwice(uuids)); err != nil {
			return false, err
		}
	}
	if answer, err = j.team.Broadcast(ctx, "shared gpus", answer); err != nil {
		return false, err
	}
	var shared []string
	if err := json.Unmarshal(answer, &shared); err != nil {
		return false, fmt.Errorf("shared GPUs: %w", err)
	}
	return chosen != nil && chosen.UUID != "" && !slices.Contains(shared, chosen.UUID), nil
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
		first roster.Member
		ranks int
		gpus  map[string]bool
	}
	var uses []*use
	for i, uuid := range uuids {
		if len(uuid) == 0 {
			continue
		}
		at := slices.IndexFunc(uses, func(u *use) bool { return roster.SharesDevices(u.first, members[i]) })
		if at < 0 {
			at = len(uses)
			uses = append(uses, &use{first: members[i], gpus: map[string]bool{}})
		}
		u := uses[at]
		u.ranks++
		u.gpus[string(uuid)] = true
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
