package rank

import (
	"context"
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

// join opens the devices of this rank, unless it is idle, meets the other ranks and checks that all of them agree.
func (r *run) join(ctx context.Context) error {
	r.countWorking()
	if !r.idle() {
		if err := r.openDevices(); err != nil {
			return err
		}
	}
	self, err := r.member()
	if err != nil {
		return err
	}
	return r.meet(ctx, self, r.takePlace)
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
	if r.many { // the others of the session use the cores, also where the run has fewer ranks
		r.cores = r.share
		return nil
	}
	near := mates(comm)
	r.id.LocalSize = localSize(r.id, near, comm.Self())
	r.cores, err = shareOfCores(near, comm.Self())
	return err
}

// member returns what this rank tells the others of itself and of its part of the run.
func (r *run) member() (roster.Member, error) {
	m, err := r.describe()
	if err != nil {
		return m, err
	}
	r.tell(&m)
	return m, nil
}

// tell enters this rank's part of the run.
func (r *run) tell(m *roster.Member) {
	m.FirstRows, m.Contents, m.Part = r.firstRows, r.contents, r.part
	if !r.idle() {
		mesh := r.problem.Mesh()
		m.Device, m.Depth, m.MaxSweeps = r.deviceName(), r.preferredDepth(mesh), r.maxPassSweeps(mesh)
	}
}

// describe returns what this rank tells the others of itself.
func (r *run) describe() (roster.Member, error) {
	host, err := os.Hostname()
	if err != nil {
		return roster.Member{}, fmt.Errorf("host name: %w", err)
	}
	node, err := shm.LocalNode()
	if err != nil {
		r.Log.Info("this node cannot be identified: no shared memory with other ranks", zap.Error(err))
	}
	extra, err := r.extra()
	if err != nil {
		return roster.Member{}, err
	}
	m := roster.Member{
		Identity: r.Origin.Identity, Version: version.String(), ConfigHash: configs.Hash(r.Config), Host: host,
		PID: os.Getpid(), Functions: problem.FunctionsHash(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Node: node, Extra: extra,
	}
	m.RunID = r.runID
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
func (r *run) extra() (json.RawMessage, error) {
	cores, err := allowedCores()
	if err != nil {
		return nil, err
	}
	e := memberExtra{Cores: cores}
	// -1: not known before the join
	if !r.idle() && r.Origin.LocalRank <= 0 && r.Config.Device.Select != string(device.RoundRobin) {
		e.Readings = r.gpus.Readings
	}
	if r.Origin.Rank == 0 && r.sweepsOnGPU() {
		g := setup.GPUsOf(r.gpus.Devices)
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
