package exchangetest

import (
	"context"
	"fmt"
	"regexp"

	"jacobi/solver"
)

// progress tells a rank which exchanges its neighbours have posted.
type progress struct {
	c      Case
	posted [][]chan struct{} // by rank and exchange; closed after Post
}

func newProgress(c Case) *progress {
	p := &progress{c: c}
	for range c.Ranks {
		var posted []chan struct{}
		for range c.Exchanges + 1 {
			posted = append(posted, make(chan struct{}))
		}
		p.posted = append(p.posted, posted)
	}
	return p
}

func (p *progress) add(rank int, n solver.ExchangeNumber) { close(p.posted[rank][n]) }

// wait waits until the neighbours of a rank have posted exchange n. There is nothing to wait for after the last one.
func (p *progress) wait(ctx context.Context, rank int, n solver.ExchangeNumber) error {
	if int(n) > p.c.Exchanges {
		return nil
	}
	for _, side := range []solver.Side{solver.Top, solver.Bottom} {
		neighbour := Neighbour(p.c.Mesh, p.c.Ranks, rank, side)
		if neighbour < 0 {
			continue
		}
		select {
		case <-p.posted[neighbour][n]:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// namesExchange returns an error unless the text of err names exchange n.
func namesExchange(err error, n solver.ExchangeNumber) error {
	if !regexp.MustCompile(fmt.Sprintf(`\bexchange %d\b`, n)).MatchString(err.Error()) {
		return fmt.Errorf("this error does not name exchange %d", n)
	}
	return nil
}
