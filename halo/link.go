// Package halo moves edge rows between neighbouring ranks: links, frames and transports.
package halo

import (
	"context"

	"jacobi/solver"
)

// Link is one end of the connection between a side of this rank and the facing side of its neighbour. It carries rows
// both ways. For every exchange n:
//
//	bytes given to Send(n) on one end == bytes that Recv(n) yields on the other
//
// Each exchange has a length of its own in each direction, from 0 to SendBytes and RecvBytes of its End. Both ranks
// know it: a Recv of another length than was sent fails with a *MismatchError.
//
// A rank sends its rows of exchange n+1 only after it has received its neighbour's rows of exchange n. So Send is at
// most one exchange ahead of Recv on the other end, and a rank that has received exchange n+1 knows that its neighbour
// has received exchange n. Send and Recv may run at the same time.
type Link interface {
	// Send sends rows for the neighbour's halo. The caller may reuse rows once it returns.
	Send(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error
	// Recv waits for the neighbour's rows of exchange and copies them into rows, which has their length. It fails when
	// they have not arrived within the link's timeout.
	Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error
	Close() error
}
