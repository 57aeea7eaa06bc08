package rank

import (
	"fmt"
	"math/bits"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/shm"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/net/roster"
)

// allowedCores returns the cores that this process may use. A batch system or an mpirun may have bound it to some.
func allowedCores() (unix.CPUSet, error) {
	var cores unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cores); err != nil {
		return cores, fmt.Errorf("read the allowed cores: %w", err)
	}
	return cores, nil
}

// mates returns the entries of the ranks that share this rank's node, and the first one of each other group.
func mates(comm *roster.Comm) (members []roster.Member) {
	self := comm.Self()
	for _, g := range comm.Groups() {
		members = append(members, g.First)
		for rank := g.First.Rank + 1; rank < g.End && roster.SharesDevices(g.First, self); rank++ {
			members = append(members, comm.Member(rank))
		}
	}
	return members
}

// localSize returns the number of working ranks that share the devices of a rank. near are mates of its own.
func localSize(id roster.Identity, near []roster.Member, self roster.Member) int {
	n := 0
	for _, m := range near {
		if roster.SharesDevices(m, self) {
			n++
		}
	}
	return min(id.LocalSize, max(n, id.LocalRank+1))
}

// shareOfCores returns the rank's share of its node's cores: the sum, over the cores that it may use, of 1 over the
// number of ranks of the node that may use the core.
func shareOfCores(members []roster.Member, self roster.Member) (share float64, err error) {
	known := map[string]memberExtra{}     // many ranks tell the same of their cores
	var busy [len(unix.CPUSet{}) * 64]int // ranks of the node that may use a core
	for _, m := range members {
		e, ok := known[string(m.Extra)]
		if !ok {
			if e, err = extraOf(m); err != nil {
				return 0, err
			}
			known[string(m.Extra)] = e
		}
		if !roster.SharesDevices(m, self) {
			continue
		}
		for word, set := range e.Cores {
			for ; set != 0; set &= set - 1 {
				busy[64*word+bits.TrailingZeros64(uint64(set))]++
			}
		}
	}
	own := known[string(self.Extra)].Cores
	for core, n := range busy {
		if own.IsSet(core) {
			share += 1 / float64(n)
		}
	}
	return share, nil
}

// threads returns the number of CPU threads that this rank keeps busy.
func (r *run) threads() int {
	switch {
	case r.sweepsOnGPU():
		return 1
	case r.Config.Device.Threads > 0:
		return r.Config.Device.Threads
	default:
		return cpu.ThreadsOn(r.cores)
	}
}

// threadsPerCore returns how many busy threads, of all ranks on the node, share a core of this rank.
func (r *run) threadsPerCore() int { return cpu.PerCoreOn(r.threads(), r.cores) }

// spin returns how long to poll shared memory for a message before sleeping.
func (r *run) spin() time.Duration { return shm.SpinTime(r.threadsPerCore()) }
