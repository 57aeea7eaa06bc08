package halo

import (
	"errors"
	"fmt"
	"time"

	"jacobi/solver"
)

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
