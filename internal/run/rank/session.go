package rank

import (
	"context"
	"fmt"
	"sync"
	"time"

	"jacobi/configs"
	"jacobi/internal/compute/device"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
)

// session is what a rank has of its start, which outlives a job.
type session struct {
	Options
	open closers // of what belongs to the start
	// keepOn is called before the first sweep. From then on Stop ends a job at a common sweep only. keepOn returns
	// false if Stop has ended before.
	keepOn func() bool
	self   roster.Member // what the others know of this rank
	all    *roster.Comm  // of all ranks that have started
	share  float64       // of the node's cores, where jobs are ordered

	connection
	devices
}

// devices are those of the node, and the one that this rank has taken.
type devices struct {
	gpus   *device.Node      // WhyCPU is nil if a GPU sweeps; nil for an idle rank
	chosen *output.GPUReport // nil if the CPU sweeps
	sole   bool              // no other rank uses the GPU
}

// start returns a session whose cancel is called when Stop ends, until keepOn is called.
func (o Options) start(cancel context.CancelCauseFunc) *session {
	return &session{Options: o, open: closers{log: o.Log},
		keepOn: sync.OnceValue(context.AfterFunc(o.Stop, func() { cancel(context.Cause(o.Stop)) }))}
}

// newRun returns a job of the session, of which no phase is done.
func (s *session) newRun(job configs.Planned) *run {
	return &run{session: s, Config: job.Config, open: closers{log: s.Log}, startedAt: time.Now(),
		ctx: s.all.Context(), keepOn: s.keepOn, prepared: prepared{planned: job.Contents},
		membership: membership{id: s.self.Identity, comm: s.all, working: s.Origin.Size}}
}

// arrive takes what belongs to the start: the connection, the devices, and the other ranks. If it fails, the others
// learn of it when their join times out.
func (s *session) arrive(ctx context.Context) error {
	return inTurn(ctx, s.connect, s.takeMethod, s.openDevices, s.meet)
}

// meet returns once all ranks have joined. From then on they watch over each other.
func (s *session) meet(ctx context.Context) error {
	self, err := s.describe()
	if err != nil {
		return err
	}
	comm, err := roster.Join(ctx, s.conn, self, s.Config.Halo.Timeout)
	if err != nil {
		return fmt.Errorf("rank %d: %w", self.Rank, err)
	}
	s.open.add(func() error { comm.Close(); return nil })
	s.all, s.self = comm, comm.Self()
	if s.retract != nil {
		if err := s.retract(); err != nil {
			return fmt.Errorf("remove the rendezvous file: %w", err)
		}
	}
	if err := comm.KeepAlive(s.Config.Run.Liveness); err != nil {
		return fmt.Errorf("rank %d: %w", self.Rank, err)
	}
	return nil
}
