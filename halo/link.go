// Package halo moves edge rows between neighbouring ranks: links, frames and transports.
package halo

import (
	"context"

	"jacobi/solver"
)

// Link carries rows between one side of this rank and the facing side of the neighbour there; the two ends
// are two Links. For every exchange b:
//
//	bytes given to Send(b) on one end == bytes that Recv(b) yields on the other
//
// Exchanges are sent in order. Send may be up to one exchange ahead of Recv on the other end; the exchange is
// symmetric, so a rank that received exchange b+1 knows that its neighbour has received exchange b.
// Send and Recv may run at the same time.
type Link interface {
	// Send hands over the rows that the neighbour's exchange reads. rows may be reused once it returns.
	Send(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error
	// Recv waits for the neighbour's rows for exchange and copies them into rows, which has their exact length. It
	// fails when they are not there within the link's timeout.
	Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error
	Close() error
}
