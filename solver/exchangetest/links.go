package exchangetest

import (
	"context"
	"fmt"

	"jacobi/solver"
)

// Links returns the links between all ranks in this process, by rank and side; nil where there is no neighbour. Like
// every link of package halo they hold the rows of two exchanges.
func Links(layouts []solver.Layout) [][2]solver.RowLink {
	type end struct {
		rank int
		side solver.Side
	}
	into := map[end]chan sent{}
	for r := range layouts {
		for _, side := range []solver.Side{solver.Top, solver.Bottom} {
			into[end{r, side}] = make(chan sent, 2)
		}
	}
	links := make([][2]solver.RowLink, len(layouts))
	for r, l := range layouts {
		for i, has := range l.Neighbour {
			side := solver.Side(i)
			if has {
				to := end{Neighbour(l.Mesh, len(layouts), r, side), side.Opposite()}
				links[r][i] = link{out: into[to], in: into[end{r, side}]}
			}
		}
	}
	return links
}

// sent is what a link carries.
type sent struct {
	exchange solver.ExchangeNumber
	rows     []byte
}

type link struct{ out, in chan sent }

// Send implements solver.RowLink.
func (l link) Send(_ context.Context, n solver.ExchangeNumber, rows []byte) error {
	select {
	case l.out <- sent{n, append([]byte(nil), rows...)}:
		return nil
	default:
		return fmt.Errorf("send exchange %d: two exchanges are under way", n)
	}
}

// Recv implements solver.RowLink.
func (l link) Recv(ctx context.Context, n solver.ExchangeNumber, rows []byte) error {
	select {
	case s := <-l.in:
		if s.exchange != n || len(s.rows) != len(rows) {
			return fmt.Errorf("receive exchange %d in %d bytes: got exchange %d with %d bytes", n, len(rows),
				s.exchange, len(s.rows))
		}
		copy(rows, s.rows)
		return nil
	case <-ctx.Done():
		return fmt.Errorf("receive exchange %d: %w", n, context.Cause(ctx))
	}
}
