package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"jacobi/internal/net/roster"
)

// crew holds all ranks of a run, on all hosts. One goroutine owns it.
type crew struct {
	hosts map[string]Host
	ended []bool    // by rank; set by note
	exits chan Exit // receives one Exit for each rank
}

// startCrew starts the ranks on their hosts. If one does not start, the others are killed.
func startCrew(ctx context.Context, j *Job) (*crew, error) {
	c := &crew{hosts: j.Hosts, ended: make([]bool, len(j.Ranks)), exits: make(chan Exit, len(j.Ranks))}
	if c.hosts == nil {
		c.hosts = map[string]Host{}
		for _, p := range j.Ranks {
			c.hosts[p.Host] = &Local{}
		}
	}
	specs := map[string]Spec{}
	for _, p := range j.Ranks {
		if c.hosts[p.Host] == nil {
			return nil, errors.Join(fmt.Errorf("start rank %d: host %s was not reached", p.Rank, p.Host), c.close())
		}
		s, ok := specs[p.Host]
		if !ok {
			s = Spec{Path: j.Path, Args: j.Args, Dir: j.Dir, Env: slices.Concat(j.Env, j.HostEnv[p.Host])}
		}
		s.Ranks = append(s.Ranks, roster.Identity{
			RunID: j.RunID, Rank: p.Rank, Size: len(j.Ranks), LocalRank: p.LocalRank, LocalSize: p.LocalSize,
		})
		specs[p.Host] = s
	}
	sink := Sink{Line: j.Output, Exit: func(e Exit) { c.exits <- e }}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for name, spec := range specs {
		wg.Go(func() {
			if err := c.hosts[name].Start(ctx, spec, sink); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		return nil, errors.Join(append(errs, c.close())...)
	}
	return c, nil
}

// signal sends sig to all ranks that have not ended.
func (c *crew) signal(sig syscall.Signal) {
	for _, h := range c.hosts {
		h.Signal(sig)
	}
}

// suspend stops all ranks that have not ended, until they get SIGCONT.
func (c *crew) suspend(ctx context.Context) {
	var wg sync.WaitGroup
	for _, h := range c.hosts {
		wg.Go(func() { h.Suspend(ctx) })
	}
	wg.Wait()
}

// note records an Exit that was received from exits.
func (c *crew) note(e Exit) { c.ended[e.Rank] = true }

// running returns the ranks that note has not recorded.
func (c *crew) running() []int {
	var ranks []int
	for r, ended := range c.ended {
		if !ended {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// close closes all hosts at the same time.
func (c *crew) close() error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, h := range c.hosts {
		wg.Go(func() {
			if err := h.Close(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
