package solver

import "context"

// Side is the upper or the lower end of a stripe.
type Side uint8

// The sides. Their values are part of the wire format.
const (
	Top    Side = 0
	Bottom Side = 1
)

// Opposite returns the other side.
func (s Side) Opposite() Side { return 1 - s }

// String returns "top" or "bottom".
func (s Side) String() string {
	if s == Top {
		return "top"
	}
	return "bottom"
}

// Sweeper sweeps one stripe: what an Engine and the norms of a Run need. The calls of a pass are Edges (only if Margin
// is 0 and an exchange follows), Interior and Sums (unless nobody wants them), in that order; all come from one
// goroutine.
//
//	new[y][x] = 0.25 * ((old[y][x-1] + old[y][x+1]) + (old[y-1][x] + old[y+1][x]))
//
// with each operation rounded on its own in the field's type, denormals kept.
type Sweeper interface {
	// Load fills the rows of now, halos included, and the fixed rows and columns of both fields.
	Load(ctx context.Context, rows RowSource) error
	// Edges computes, after p.Sweeps sweeps, at least rows [Lo, Lo+Depth) and [Hi-Depth, Hi) of next where
	// there is a neighbour. What it computes beyond them is the sweeper's choice.
	Edges(ctx context.Context, p Pass) error
	// Interior computes all rows of the pass that Edges did not; then next becomes now and now next.
	Interior(ctx context.Context, p Pass) error
	// Sums returns, for each sweep of the pass, the sum of squares of new-old over the interior points of rows
	// [Lo, Hi). It waits for the pass if need be. The slice is valid until the next call.
	Sums(ctx context.Context, p Pass) ([]Sum, error)
	// Undo takes the last Interior back: now and next change places again, halos included.
	Undo() error
	// Limits says what the sweeper can and wants.
	Limits() Limits
}

// HaloRows moves the edge rows and halos of a stripe through the host's memory: what a HostExchange needs.
type HaloRows interface {
	// CopyEdge copies Depth rows of next, those at the given end of [Lo, Hi), to dst: dense, NX values a row. Only
	// between Edges and Interior.
	CopyEdge(ctx context.Context, side Side, dst []byte) error
	// SetHalo fills the halo of now beyond side from src: Depth dense rows, from top to bottom. Only between
	// Interior and the next Edges or Interior.
	SetHalo(ctx context.Context, side Side, src []byte) error
}

// Backend is one stripe on a device: it sweeps, moves halos through the host where no other way is used, and gives its
// rows to outputs and checkpoints.
type Backend interface {
	Sweeper
	HaloRows
	// CopyRows copies rows [s.Lo, s.Hi), which lie in the stripe, of now to dst, dense.
	CopyRows(ctx context.Context, s Stripe, dst []byte) error
	Close() error
}

// Limits describe a sweeper once it is open.
type Limits struct {
	MaxSweeps int   // most sweeps in one pass
	Lag       int   // 0: Sums of a pass is ready after Interior; 1: it waits for a device, ask one pass later
	Bytes     int64 // memory for fields, halos and scratch
}

// Flags are what a rank lets all others know along with its sums.
type Flags uint8

// The flags. Their values are part of the wire format.
const (
	FlagStop Flags = 1 << iota // it was asked to stop
	FlagSave                   // it wishes the state to be saved
	FlagBusy                   // it is still saving an earlier state
	flagsEnd
)

// Valid says whether f holds known flags alone.
func (f Flags) Valid() bool { return f < flagsEnd }

// Contribution is what one rank gives to, and all ranks get from, the reduction of a pass.
type Contribution struct {
	Sums  []Sum // one a sweep
	Flags Flags // of this rank; in a total: of any rank
}

// Reducer adds contributions over all ranks; every rank gets the same, to the bit.
type Reducer interface {
	// Post hands in this rank's contribution to a pass and does not wait for others. Passes come in order.
	Post(ctx context.Context, pass uint64, c Contribution) error
	// Wait returns the total of a pass that was posted, once and in order.
	Wait(ctx context.Context, pass uint64) (Contribution, error)
}
