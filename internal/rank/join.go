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
	"jacobi/internal/device"
	"jacobi/internal/problem"
	"jacobi/internal/roster"
	"jacobi/internal/shm"
	"jacobi/internal/version"
)

// joined is a rank that has met the others.
type joined struct {
	*connected
	id    roster.Identity // with the local rank and size, which the join may have set
	team  *roster.Team
	cores float64 // this rank's share of the node's cores
}

// join meets the other ranks and checks that all of them agree. From then on the ranks watch over each other.
func (c *connected) join(ctx context.Context, open *closers) (*joined, error) {
	self, err := c.member()
	if err != nil {
		return nil, err
	}
	team, err := roster.Join(ctx, c.conn, self, c.Config.Halo.Timeout)
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", self.Rank, err)
	}
	open.add(func() error { team.Close(); return nil })
	cores, err := shareOfCores(mates(team), team.Self())
	if err != nil {
		return nil, err
	}
	if c.retract != nil {
		if err := c.retract(); err != nil {
			return nil, fmt.Errorf("remove the rendezvous file: %w", err)
		}
	}
	if err := team.KeepAlive(c.Config.Run.Liveness); err != nil {
		return nil, fmt.Errorf("rank %d: %w", self.Rank, err)
	}
	return &joined{connected: c, id: team.Self().Identity, team: team, cores: cores}, nil
}

// member returns what this rank tells the others of itself.
func (c *connected) member() (roster.Member, error) {
	host, err := os.Hostname()
	if err != nil {
		return roster.Member{}, fmt.Errorf("host name: %w", err)
	}
	node, err := shm.LocalNode()
	if err != nil {
		c.Log.Info("this node cannot be identified: no shared memory with other ranks", zap.Error(err))
	}
	extra, err := c.extra()
	if err != nil {
		return roster.Member{}, err
	}
	id, mesh := c.Origin.Identity, c.problem.Mesh()
	id.RunID = c.runID
	return roster.Member{
		Identity: id, Version: version.String(), ConfigHash: configs.Hash(c.Config), Host: host, PID: os.Getpid(),
		Functions: problem.FunctionsHash(), FirstRows: c.firstRows, Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Node: node, Device: c.deviceName(), Part: c.part, Depth: c.preferredDepth(mesh),
		MaxSweeps: c.maxPassSweeps(mesh), Extra: extra,
	}, nil
}

// memberExtra is the part of a roster.Member that only this program uses.
type memberExtra struct {
	Cores unix.CPUSet `json:"cores"` // cores that the rank may use
	// Readings of the node's GPUs come from local rank 0 if device.select orders by readings.
	Readings []device.GPU `json:"readings,omitempty"`
}

// extra returns this rank's memberExtra.
func (p *prepared) extra() (json.RawMessage, error) {
	cores, err := allowedCores()
	if err != nil {
		return nil, err
	}
	e := memberExtra{Cores: cores}
	// -1: not known before the join
	if p.Origin.LocalRank <= 0 && p.Config.Device.Select != string(device.RoundRobin) {
		e.Readings = p.gpus.Readings
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
