package rank

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/internal/cpu"
	"jacobi/internal/roster"
	"jacobi/internal/shm"
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
			if roster.SharesDevices(m, members[rank]) && cores[i].IsSet(core) {
				ranks++
			}
		}
		share += 1 / float64(ranks)
	}
	return share, nil
}

// threads returns the number of CPU threads that this rank keeps busy.
func (j *joined) threads() int {
	switch {
	case j.sweepsOnGPU():
		return 1
	case j.Config.Device.Threads > 0:
		return j.Config.Device.Threads
	default:
		return cpu.ThreadsOn(j.cores)
	}
}

// threadsPerCore returns how many busy threads, of all ranks on the node, share a core of this rank.
func (j *joined) threadsPerCore() int { return cpu.PerCoreOn(j.threads(), j.cores) }

// spin returns how long to poll shared memory for a message before sleeping.
func (j *joined) spin() time.Duration { return shm.SpinTime(j.threadsPerCore()) }
