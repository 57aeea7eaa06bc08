package rank

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/shm"
	"jacobi/internal/base/version"
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
	if s.Origin.Rank == 0 && s.sweepsOnGPU() {
		g := setup.GPUsOf(s.gpus.Devices)
		e.GPUs = &g
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
