package rank

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/shm"
	"jacobi/internal/base/version"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/compute/device"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/setup"
)

// membership is the place of this rank among the others.
type membership struct {
	working int             // ranks that have rows; the others stay idle
	id      roster.Identity // with the local rank and size, which the join may have set
	comm    *roster.Comm
	cores   float64 // this rank's share of the node's cores
}

// takePlace takes the place of this rank in comm.
func (r *run) takePlace(comm *roster.Comm) (err error) {
	comm.SetWorking(r.working)
	if err := r.leaveIdle(comm); err != nil {
		return err
	}
	r.id, r.comm = comm.Self().Identity, comm // its Size is r.working
	if r.idle() {
		return nil
	}
	if r.share > 0 { // the others of the session use the cores, also where the job has fewer ranks
		r.cores = r.share
		return nil
	}
	near := mates(comm)
	r.id.LocalSize = localSize(r.id, near, comm.Self())
	r.cores, err = shareOfCores(near, comm.Self())
	return err
}

// describe returns what this rank tells the others of itself.
func (s *session) describe() (roster.Member, error) {
	host, err := os.Hostname()
	if err != nil {
		return roster.Member{}, fmt.Errorf("host name: %w", err)
	}
	node, err := shm.LocalNode()
	if err != nil {
		s.Log.Info("this node cannot be identified: no shared memory with other ranks", zap.Error(err))
	}
	extra, err := s.extra()
	if err != nil {
		return roster.Member{}, err
	}
	m := roster.Member{
		Identity: s.Origin.Identity, Version: version.String(), ConfigHash: configs.Hash(s.Config), Host: host,
		PID: os.Getpid(), Functions: problem.FunctionsHash(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Node: node, Extra: extra,
	}
	m.RunID = s.runID
	return m, nil
}

// memberExtra is the part of a roster.Member that only this program uses.
type memberExtra struct {
	Cores unix.CPUSet `json:"cores"` // cores that the rank may use
	// Readings of the node's GPUs come from local rank 0 if device.select orders by readings.
	Readings []device.GPU `json:"readings,omitempty"`
	GPUs     *setup.GPUs  `json:"gpus,omitempty"` // of rank 0, if it sweeps on one
}

// extra returns this rank's memberExtra.
func (s *session) extra() (json.RawMessage, error) {
	cores, err := allowedCores()
	if err != nil {
		return nil, err
	}
	e := memberExtra{Cores: cores}
	// -1: not known before the join
	if !s.spare() && s.Origin.LocalRank <= 0 && s.Config.Device.Select != string(device.RoundRobin) {
		e.Readings = s.gpus.Readings
	}
	if s.Origin.Rank == 0 {
		e.GPUs = s.offered
	}
	return json.Marshal(e)
}

// extraOf decodes the member's memberExtra.
func extraOf(m roster.Member) (e memberExtra, err error) {
	if err := json.Unmarshal(m.Extra, &e); err != nil {
		return e, fmt.Errorf("rank %d: data of its join: %w", m.Rank, err)
	}
	return e, nil
}

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
