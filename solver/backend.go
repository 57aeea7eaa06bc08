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

// Sweeper sweeps one stripe; Jacobi's method needs no more of a Backend. For each pass the caller calls Edges (only if
// Margin is 0 and an exchange follows), Interior, and Sums (if it needs them), from one goroutine:
//
//	Load      at any time, first of all and after a call that failed
//	Edges     after Load, Interior and Undo
//	CopyEdge  after Edges
//	Interior  after Edges, for the same pass; without Edges, after Load, Interior and Undo
//	Sums      after Interior, for its pass, or with a Lag of 1 for the pass before
//	SetHalo   after Interior
//	Undo      after Interior
//
// A sweep computes the layout's Operator at every interior point that is not fixed, with denormals kept, and leaves all
// other points as they are. Where left and right are periodic, columns 0 and NX-1 are copies (see Mesh) after every
// sweep, and a pass has one sweep.
type Sweeper interface {
	// Load fills the rows of now, halos included, and the fixed points, rows and columns of both fields. It reads the
	// operator's values and fixed points of these rows. Of periodic columns it makes copies, whatever rows yields.
	Load(ctx context.Context, rows RowSource) error
	// Edges computes at least rows [Lo, Lo+Depth) and [Hi-Depth, Hi) of next where there is a neighbour: their values
	// after p.Sweeps sweeps. A sweeper may compute more rows.
	Edges(ctx context.Context, p Pass) error
	// Interior computes the rows of the pass that Edges did not. Then it swaps now and next.
	Interior(ctx context.Context, p Pass) error
	// Sums returns, for each sweep of the pass that has a norm (Layout.Norms), the sum of squares of new-old over the
	// interior points of rows [Lo, Hi). It waits until the pass is done. The slice is valid until the next call. A pass
	// without norms has none.
	Sums(ctx context.Context, p Pass) ([]Sum, error)
	// Undo takes the last Interior back: it swaps now and next again, halos included.
	Undo() error
	// Limits returns what the sweeper can do.
	Limits() Limits
}

// Rows reads the field of one rank, or several arrays, one after the other.
type Rows interface {
	// CopyRows copies rows [s.Lo, s.Hi), which must lie in the stripe, to dst: dense, NX values a row.
	CopyRows(ctx context.Context, s Stripe, dst []byte) error
}

// Backend is one stripe on a device. It sweeps, moves halos through the host's memory where ranks exchange them there,
// and copies rows out for outputs and checkpoints.
type Backend interface {
	Sweeper
	// HaloRows are those of Depth rows: CopyEdge copies from next, between Edges and Interior, and SetHalo fills the
	// halos of now, between Interior and the next Edges or Interior.
	HaloRows
	// Rows are those of now.
	Rows
	Close() error
}

// Limits describe a sweeper once it is open.
type Limits struct {
	MaxSweeps int   // largest number of sweeps in one pass
	Lag       int   // 0: Sums does not wait after Interior; 1: it waits for a device, so call it one pass later
	Bytes     int64 // memory for fields, halos and scratch
}

// Flags are the requests and the state that a rank sends to all others with its sums.
type Flags uint8

// The flags. Their values are part of the wire format.
const (
	FlagStop   Flags = 1 << iota // the rank was asked to stop
	FlagSave                     // the rank asks for the state to be saved
	FlagBusy                     // the rank is still saving an earlier state
	FlagSample                   // the rank asks for a sample of the field
	flagsEnd
)

// Valid reports whether f holds known flags only.
func (f Flags) Valid() bool { return f < flagsEnd }

// Contribution is what one rank puts into the reduction of a pass. The total that every rank gets back has the same
// type.
type Contribution struct {
	Sums  []Sum // one for each sweep of the pass that has a norm
	Flags Flags // of the rank; in a total, those that any rank set
}

// Reducer adds contributions over all ranks. Every rank gets the same total, to the bit.
type Reducer interface {
	// Post hands in this rank's contribution to a pass without waiting for other ranks. Passes are posted in order.
	Post(ctx context.Context, pass uint64, c Contribution) error
	// Wait returns the total of a posted pass. It is called once for each pass, in order.
	Wait(ctx context.Context, pass uint64) (Contribution, error)
}
