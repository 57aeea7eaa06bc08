// Package halo moves edge rows between neighbouring ranks: links, frames and transports.
package halo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

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

// RunID identifies one start of a run.
type RunID [16]byte

// RunIDOf returns the id of the run called name: the first 16 bytes of the SHA-256 of name. Every start of a run has a
// new name, a restart included.
func RunIDOf(name string) RunID {
	sum := sha256.Sum256([]byte(name))
	return RunID(sum[:len(RunID{})])
}

// String returns the id as 32 hexadecimal digits, which fit into a NATS subject.
func (id RunID) String() string { return hex.EncodeToString(id[:]) }

// End describes one end of a link: a side of a rank, and the rows sent and received there. The two ends of a link
// mirror each other (see Facing); every transport checks that they do.
type End struct {
	Run       RunID
	Rank      int
	Neighbour int         // equals Rank for a single rank with periodic top and bottom
	Side      solver.Side // of Rank; the neighbour's is the opposite one
	NX        int         // values a row
	DType     solver.DType
	Send      solver.Stripe // rows of Rank that fill the neighbour's halo: the most that an exchange sends
	Recv      solver.Stripe // rows of Neighbour that fill Rank's halo: the most that an exchange receives
}

// Ends returns the ends of rank, by side, for a mesh divided into stripes with halos of depth rows. An end is nil where
// the mesh ends.
func Ends(run RunID, mesh solver.Mesh, stripes []solver.Stripe, depth, rank int) [2]*End {
	n := len(stripes)
	end := func(side solver.Side, neighbour int) *End {
		mine, theirs := stripes[rank], stripes[neighbour]
		e := &End{Run: run, Rank: rank, Neighbour: neighbour, Side: side, NX: mesh.NX, DType: mesh.DType}
		if side == solver.Top {
			e.Send = solver.Stripe{Lo: mine.Lo, Hi: mine.Lo + depth}
			e.Recv = solver.Stripe{Lo: theirs.Hi - depth, Hi: theirs.Hi}
		} else {
			e.Send = solver.Stripe{Lo: mine.Hi - depth, Hi: mine.Hi}
			e.Recv = solver.Stripe{Lo: theirs.Lo, Hi: theirs.Lo + depth}
		}
		return e
	}
	var ends [2]*End
	if rank > 0 || mesh.PeriodicRows() {
		ends[solver.Top] = end(solver.Top, (rank+n-1)%n)
	}
	if rank < n-1 || mesh.PeriodicRows() {
		ends[solver.Bottom] = end(solver.Bottom, (rank+1)%n)
	}
	return ends
}

// Facing returns the other end of the link.
func (e End) Facing() End {
	e.Rank, e.Neighbour = e.Neighbour, e.Rank
	e.Side = e.Side.Opposite()
	e.Send, e.Recv = e.Recv, e.Send
	return e
}

// SendBytes returns the most bytes of an exchange that Send takes: the size of the rows Send, stored without gaps.
func (e End) SendBytes() int { return e.bytes(e.Send) }

// RecvBytes returns the most bytes of an exchange that Recv yields: the size of the rows Recv, stored without gaps.
func (e End) RecvBytes() int { return e.bytes(e.Recv) }

func (e End) bytes(rows solver.Stripe) int { return rows.Rows() * e.NX * e.DType.Size() }

func (e End) check() error {
	switch {
	case e.NX < 1 || e.NX > math.MaxUint32:
		return fmt.Errorf("halo: link of rank %d: %d columns", e.Rank, e.NX)
	case e.DType != solver.Float32 && e.DType != solver.Float64:
		return fmt.Errorf("halo: link of rank %d: %v", e.Rank, e.DType)
	case e.Side != solver.Top && e.Side != solver.Bottom:
		return fmt.Errorf("halo: link of rank %d: side %d", e.Rank, e.Side)
	case e.Rank < 0 || e.Neighbour < 0 || max(e.Rank, e.Neighbour) > math.MaxUint32:
		return fmt.Errorf("halo: link between ranks %d and %d", e.Rank, e.Neighbour)
	}
	for _, s := range []solver.Stripe{e.Send, e.Recv} {
		if s.Lo < 0 || s.Hi <= s.Lo || s.Hi > math.MaxUint32 || s.Rows() > math.MaxInt/16/e.NX {
			return fmt.Errorf("halo: link of rank %d: rows %v", e.Rank, s)
		}
	}
	return nil
}

// Member describes a rank to a rank that chooses a transport to it. Both ranks of a pair must be given the same
// SharesMemory and Why.
type Member struct {
	Host         string // for messages
	SharesMemory bool   // with the rank that is given the Member
	Why          string // why it does or does not
}

// Peer is a direct transport between two ranks. Connect tries the peers in order, and NATS after them. Both ranks of a
// pair must have the same peers in the same order.
type Peer interface {
	// Name returns the transport's name, the same on both ends.
	Name() string
	// Reachable reports whether Offer to the neighbour is worth trying, and why or why not. Both ends get the same
	// result.
	Reachable(neighbour Member) (bool, string)
	// Offer opens the first end. Accept in the neighbour's process makes the second one from the returned offer.
	Offer(end End) (Link, json.RawMessage, error)
	// Accept opens the second end.
	Accept(end End, offer json.RawMessage) (Link, error)
}

// ErrClosed reports that a link was closed before or during the call.
var ErrClosed = errors.New("link closed")

// TimeoutError reports that a neighbour did not send rows, or did not free a buffer for them, in time. The cause is
// usually a failure of that neighbour, or of a rank beyond it.
type TimeoutError struct {
	Rank, Neighbour int
	Side            solver.Side // of Rank
	Exchange        solver.ExchangeNumber
	Rows            solver.Stripe // not received, or not sent
	Sending         bool          // Send timed out; false: Recv did
	Transport       string
	Waited          time.Duration
	Detail          string // more about the wait; may be empty
}

// Error names the ranks, the rows, the exchange and the transport.
func (e *TimeoutError) Error() string {
	what, dir := "for", "from"
	if e.Sending {
		what, dir = "to hand over", "to"
	}
	s := fmt.Sprintf("halo: rank %d waited %v %s the rows %v of exchange %d %s rank %d (%s side) over %s",
		e.Rank, e.Waited, what, e.Rows, e.Exchange, dir, e.Neighbour, e.Side, e.Transport)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Timeout reports that the error is a timeout, as net.Error has it.
func (e *TimeoutError) Timeout() bool { return true }

// MismatchError reports that the two ends of a link, or an end and a frame, disagree.
type MismatchError struct {
	Field     string
	Got, Want any
}

// Error names both values.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s %v, want %v", e.Field, e.Got, e.Want)
}

func mismatch[T comparable](field string, got, want T) error {
	if got == want {
		return nil
	}
	return &MismatchError{Field: field, Got: got, Want: want}
}

// wrap adds the operation, the link and the exchange to err.
func (e End) wrap(op string, exchange solver.ExchangeNumber, transport string, err error) error {
	return fmt.Errorf("halo: rank %d, %s side: %s exchange %d, rank %d over %s: %w", e.Rank, e.Side, op, exchange,
		e.Neighbour, transport, err)
}

func (e End) timeout(sending bool, exchange solver.ExchangeNumber, transport string, waited time.Duration,
	detail string) error {
	rows := e.Recv
	if sending {
		rows = e.Send
	}
	return &TimeoutError{Rank: e.Rank, Neighbour: e.Neighbour, Side: e.Side, Exchange: exchange, Rows: rows,
		Sending: sending, Transport: transport, Waited: waited, Detail: detail}
}

// checkLen returns an error if n, the bytes of rows that a caller sends or wants, is more than an exchange has.
func (e End) checkLen(op string, exchange solver.ExchangeNumber, transport string, n, most int) error {
	if n <= most {
		return nil
	}
	return e.wrap(op, exchange, transport,
		&MismatchError{Field: "bytes", Got: n, Want: fmt.Sprintf("at most %d", most)})
}
