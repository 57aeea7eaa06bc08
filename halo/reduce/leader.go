package reduce

import (
	"context"
	"errors"
	"sync"
	"time"

	"jacobi/solver"
)

// leader is the path of a rank that connects its node to the others. A goroutine waits for the node's ranks, so that
// the node's contribution is sent as soon as the last of them has posted.
type leader struct {
	star   *star
	node   *node
	passes chan uint64 // posted by this rank
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newLeader(s *star, n *node) *leader {
	ctx, cancel := context.WithCancel(context.Background())
	l := &leader{star: s, node: n, passes: make(chan uint64, s.window), cancel: cancel}
	s.onTotal = n.putTotal
	s.onAsk = func(pass uint64) {
		if gone := s.missing(pass); len(gone) > 0 {
			n.setHint(pass, gone[0])
		}
	}
	l.done.Go(func() {
		if err := l.pump(ctx); err != nil && ctx.Err() == nil {
			s.fail(err)
		}
	})
	return l
}

// pump sends the node's contributions to the root, pass by pass.
func (l *leader) pump(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case pass := <-l.passes:
			c, err := l.collect(ctx, pass)
			if err != nil {
				return err
			}
			if err := l.star.contribute(pass, c); err != nil {
				return err
			}
		}
	}
}

// collect waits for the node's ranks. While it waits, it tells the root which of them are missing.
func (l *leader) collect(ctx context.Context, pass uint64) (solver.Contribution, error) {
	for pause := l.star.ask; ; pause = min(2*pause, lastAsk) {
		c, err := l.node.wait(ctx, pass, time.Now().Add(pause))
		if !errors.Is(err, errLate) {
			return c, err
		}
		if err := l.star.sendMissing(pass, l.node.missing(pass)); err != nil {
			return solver.Contribution{}, err
		}
	}
}

func (l *leader) post(pass uint64, c solver.Contribution) error {
	l.star.announce(pass)
	if err := l.node.post(pass, c); err != nil {
		return err
	}
	l.passes <- pass // has room: at most window passes are not waited for
	return nil
}

func (l *leader) wait(ctx context.Context, pass uint64, deadline time.Time) (solver.Contribution, error) {
	return l.star.wait(ctx, pass, deadline)
}

func (l *leader) missing(pass uint64) []int {
	if gone := l.node.missing(pass); gone != nil {
		return gone
	}
	return l.star.missing(pass)
}

func (l *leader) close() error {
	l.cancel()
	l.done.Wait()
	return errors.Join(l.star.close(), l.node.close())
}
