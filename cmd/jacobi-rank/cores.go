package main

import (
	"encoding/json"
	"fmt"

	"golang.org/x/sys/unix"

	"jacobi/internal/cpu"
	"jacobi/internal/roster"
)

// allowedCores returns the cores that this process may use. A batch system or an mpirun may have bound it to some.
func allowedCores() (unix.CPUSet, error) {
	var cores unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cores); err != nil {
		return cores, fmt.Errorf("read the allowed cores: %w", err)
	}
	return cores, nil
}

// shareOfCores returns the rank's share of its node's cores: the sum, over the cores that it may use, of 1 over the
// number of ranks of the node that may use the core.
func shareOfCores(members []roster.Member, rank int) (share float64, err error) {
	cores := make([]unix.CPUSet, len(members))
	for i, m := range members {
		e, err := extraOf(m)
		if err != nil {
			return 0, err
		}
		cores[i] = e.Cores
	}
	for core := range len(unix.CPUSet{}) * 64 {
		if !cores[rank].IsSet(core) {
			continue
		}
		ranks := 0
		for i, m := range members {
			if nodeOf(m) == nodeOf(members[rank]) && cores[i].IsSet(core) {
				ranks++
			}
		}
		share += 1 / float64(ranks)
	}
	return share, nil
}

// extraOf decodes the member's memberExtra.
func extraOf(m roster.Member) (e memberExtra, err error) {
	if err := json.Unmarshal(m.Extra, &e); err != nil {
		return e, fmt.Errorf("rank %d: data of its join: %w", m.Rank, err)
	}
	return e, nil
}

// threads returns the number of CPU threads that this rank keeps busy.
func (r *rank) threads() int {
	switch {
	case r.sweepsOnGPU():
		return 1
	case r.cfg.Device.Threads > 0:
		return r.cfg.Device.Threads
	default:
		return cpu.ThreadsOn(r.cores)
	}
}

// threadsPerCore returns how many busy threads, of all ranks on the node, share a core of this rank.
func (r *rank) threadsPerCore() int { return cpu.PerCoreOn(r.threads(), r.cores) }
