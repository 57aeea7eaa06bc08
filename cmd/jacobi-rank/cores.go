package main

import (
	"encoding/json"
	"fmt"

	"golang.org/x/sys/unix"

	"jacobi/internal/cpu"
	"jacobi/internal/roster"
)

// allowedCores returns the cores that this process may use: a batch system or an mpirun may have bound each rank to
// some.
func allowedCores() (unix.CPUSet, error) {
	var cores unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cores); err != nil {
		return cores, fmt.Errorf("read the allowed cores: %w", err)
	}
	return cores, nil
}

// shareOfCores returns how many cores a rank may call its own: each one that it may use, divided by the ranks of its
// node that may.
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

// extraOf returns what a member said beyond what every program says.
func extraOf(m roster.Member) (e memberExtra, err error) {
	if err := json.Unmarshal(m.Extra, &e); err != nil {
		return e, fmt.Errorf("rank %d: what it said when it joined: %w", m.Rank, err)
	}
	return e, nil
}

// threads returns how many threads of the CPU this rank keeps busy.
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

// threadsPerCore returns how many busy threads, of all ranks of the node, take turns on a core of this rank.
func (r *rank) threadsPerCore() int { return cpu.PerCoreOn(r.threads(), r.cores) }
