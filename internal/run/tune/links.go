package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"jacobi/halo"
	"jacobi/internal/base/awake"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// A probe of a link is one message to begin with, then probeShort short messages, then probeLong of probeBytes. Where
// these take longer than probeTime, there are fewer of them, at least probeLeast. The first byte of the last one is 1.
const (
	probeShort   = 5
	probeLong    = 12
	probeLeast   = 3
	probeBytes   = 256 << 10
	probeTime    = 100 * time.Millisecond
	probeTimeout = 2 * time.Second
)

// Depth returns the depth of the run. If the keys leave it to the backends, and rows go through links outside of
// shared memory, the ranks measure these links and the speed of CPUs, and rank 0 decides. All ranks call it.
func (r Ranks) Depth(ctx context.Context) (setup.Depth, error) {
	mesh, groups, self := r.Mesh, r.Comm.Groups(), r.Comm.Self()
	preferred, auto := setup.DepthOf(r.Config, mesh, preferredDepth(groups))
	if !auto {
		return preferred, nil
	}
	low := solver.MinRows(mesh.Interior(), self.Size)
	mode := halo.Mode(r.Config.Halo.Transport)
	pairs := linksToMeasure(groups, mode, mesh.PeriodicRows())
	if len(pairs) == 0 || 2*preferred.Rows > min(low, maxAutoDepth) {
		return preferred, nil
	}
	ctx, cancel := awake.WithTimeout(ctx, r.Config.Halo.Timeout+probeTimeout)
	defer cancel()
	fail := func(err error) (setup.Depth, error) {
		return setup.Depth{}, fmt.Errorf("rank %d: choose halo.depth: %w", self.Rank, err)
	}
	rate, err := r.sweepRate(ctx, preferred)
	if err != nil {
		return fail(err)
	}
	choose := func(links []linkTime, rates []float64) setup.Depth {
		d := deepening{mesh: mesh, minRows: low, mode: mode, links: links, rates: rates}
		depth := d.choose(preferred)
		if text := d.alone(r.Comm.Members(), depth); text != "" {
			r.Log.Warn(text)
		}
		return depth
	}
	depth, err := agreeOnDepth(ctx, r.Comm, pairs, rate, probeTimeout, choose)
	if err != nil {
		return fail(err)
	}
	if depth.Rows < 1 || depth.Rows > low || depth.Sweeps < 1 {
		return depth, fmt.Errorf("rank %d: rank 0 chose a halo depth of %d rows with %d sweeps a pass, and the "+
			"lowest stripe has %d rows", self.Rank, depth.Rows, depth.Sweeps, low)
	}
	if self.Rank == 0 {
		r.Log.Sugar().Infof("halo depth %d (%s)", depth.Rows, depth.Why)
	}
	return depth, nil
}

// sweepRate measures how many points this rank updates in a second if the CPU sweeps. On a GPU it returns 0.
func (r Ranks) sweepRate(ctx context.Context, depth setup.Depth) (float64, error) {
	if r.OnGPU {
		return 0, nil
	}
	s, err := r.Divide(setup.Options{Depth: depth})
	if err != nil {
		return 0, err
	}
	rate, err := cpu.SweepRate(ctx, s.Layout(r.Comm.Self().Rank), r.CPU)
	if err != nil {
		return 0, fmt.Errorf("measure the speed of the CPU: %w", err)
	}
	return rate, nil
}

// linksToMeasure returns the pairs of neighbours, of each pair the rank above and the rank below, whose rows go through
// links outside of shared memory. All ranks come to the same result.
func linksToMeasure(groups []roster.Group, mode halo.Mode, periodic bool) (pairs [][2]int) {
	size := groups[len(groups)-1].End
	if size == 1 || mode == halo.ModeP2P {
		return nil
	}
	for i, g := range groups {
		next := groups[(i+1)%len(groups)].First
		if mode == halo.ModeNATS || !roster.InOneMemory(g.First, g.First) {
			for above := g.First.Rank; above < g.End-1; above++ {
				pairs = append(pairs, [2]int{above, above + 1})
			}
		}
		if (g.End < size || periodic) && (mode == halo.ModeNATS || !roster.InOneMemory(g.First, next)) {
			pairs = append(pairs, [2]int{g.End - 1, next.Rank})
		}
	}
	return pairs
}

// measured is what a rank has measured.
type measured struct {
	Links []linkTime `json:"links"`
	Rate  float64    `json:"rate"` // see deepening.rates
}

// agreeOnDepth measures the links of pairs, all at once, and gives all ranks what rank 0 chooses by all measurements.
// It begins when all ranks have measured their rate, so that no CPU sweeps meanwhile.
func agreeOnDepth(ctx context.Context, comm *roster.Comm, pairs [][2]int, rate float64, timeout time.Duration,
	choose func(links []linkTime, rates []float64) setup.Depth) (depth setup.Depth, err error) {
	if err := comm.Barrier(ctx, "sweeps measured"); err != nil {
		return depth, err
	}
	links, err := measureLinks(ctx, comm, pairs, timeout)
	if err != nil {
		return depth, err
	}
	decide := func(all []measured) (setup.Depth, error) {
		var links []linkTime
		var rates []float64
		for _, m := range all {
			links, rates = append(links, m.Links...), append(rates, m.Rate)
		}
		return choose(links, rates), nil
	}
	return roster.DecideOn(ctx, comm, "measurements", measured{links, rate}, decide)
}

// measureLinks takes this rank's part in the measurements, and returns those that it made. A neighbour that does not
// answer in time is no error but a Fault.
func measureLinks(ctx context.Context, comm *roster.Comm, pairs [][2]int, timeout time.Duration) ([]linkTime, error) {
	ctx, cancel := awake.WithTimeout(ctx, timeout)
	defer cancel()
	self := comm.Self().Rank
	var own []linkTime
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range pairs {
		tag := fmt.Sprintf("probe from %d", p[0])
		switch self {
		case p[0]:
			g.Go(func() error { // one pair alone has this rank above
				l, err := timeLink(ctx, comm, p[1], tag)
				if err = unlessLate(err); err == nil && l.Large == 0 {
					l.Fault = fmt.Sprintf("rank %d did not answer rank %d within %v", p[1], p[0], timeout)
				}
				own = []linkTime{l}
				return err
			})
		case p[1]:
			g.Go(func() error {
				for {
					data, err := comm.Recv(ctx, p[0], tag)
					if err != nil {
						return unlessLate(err) // the other rank knows
					}
					if len(data) > 0 && data[0] == 1 {
						return nil
					}
				}
			})
		}
	}
	err := g.Wait()
	return own, err
}

// unlessLate returns err, or nil if it is a timeout.
func unlessLate(err error) error {
	if _, late := errors.AsType[*roster.TimeoutError](err); late {
		return nil
	}
	return err
}

// timeLink measures the link to rank to. It keeps the least times. The first messages are slow because buffers still
// grow, and other processes may slow down any of them.
func timeLink(ctx context.Context, comm *roster.Comm, to int, tag string) (linkTime, error) {
	l := linkTime{From: comm.Self().Rank, To: to}
	if _, err := timeMessage(ctx, comm, to, tag, nil); err != nil { // waits until the other rank is there
		return l, err
	}
	trip, large := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range probeShort {
		took, err := timeMessage(ctx, comm, to, tag, nil)
		if err != nil {
			return l, err
		}
		trip = min(trip, took)
	}
	data := make([]byte, probeBytes)
	for n, begin := 1, time.Now(); data[0] == 0; n++ {
		if n == probeLong || n >= probeLeast && time.Since(begin) > probeTime {
			data[0] = 1
		}
		took, err := timeMessage(ctx, comm, to, tag, data)
		if err != nil {
			return l, err
		}
		large = min(large, took)
	}
	l.Trip, l.Large = trip, large
	return l, nil
}

// timeMessage returns the time of a message from its Send until the other rank has acknowledged it.
func timeMessage(ctx context.Context, comm *roster.Comm, to int, tag string, data []byte) (time.Duration, error) {
	begin := time.Now()
	err := comm.Send(ctx, to, tag, data)
	return time.Since(begin), err
}
