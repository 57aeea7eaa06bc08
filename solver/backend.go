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

// Block is one pass: Sweeps sweeps, of which the first has number First, from the field now into the field
// next. The pass computes rows [Lo-Margin, Hi+Margin), as far as they are interior rows or, beyond a side
// with a neighbour, halo rows; it reads Sweeps rows more on each side. Margin is 0 in the last pass before an
// exchange. Norms count the rows [Lo, Hi) alone.
type Block struct {
	Index  uint64 // 0, 1, 2, ... ; a replayed block keeps its number
	First  int
	Sweeps int
	Margin int
}

// Backend sweeps one stripe. The calls of a block are Edges (only if Margin is 0 and an exchange follows), Interior and
// Sums (unless nobody wants them), in that order; all come from one goroutine.
//
//	new[y][x] = 0.25 * ((old[y][x-1] + old[y][x+1]) + (old[y-1][x] + old[y+1][x]))
//
// with each operation rounded on its own in the field's type, denormals kept.
type Backend interface {
	// Load fills the rows of now, halos included, and the fixed rows and columns of both fields.
	Load(ctx context.Context, rows RowSource) error
	// Edges computes, after b.Sweeps sweeps, at least rows [Lo, Lo+Depth) and [Hi-Depth, Hi) of next where
	// there is a neighbour. What it computes beyond them is the backend's choice.
	Edges(ctx context.Context, b Block) error
	// CopyEdge copies Depth rows of next, those at the given end of [Lo, Hi), to dst: dense, NX values a row. Only
	// between Edges and Interior.
	CopyEdge(ctx context.Context, side Side, dst []byte) error
	// Interior computes all rows of the block that Edges did not; then next becomes now and now next.
	Interior(ctx context.Context, b Block) error
	// SetHalo fills the halo of now beyond side from src: Depth dense rows, from top to bottom. Only between
	// Interior and the next Edges or Interior.
	SetHalo(ctx context.Context, side Side, src []byte) error
	// Sums returns, for each sweep of the block, the sum of squares of new-old over the interior points of rows
	// [Lo, Hi). It waits for the block if need be. The slice is valid until the next call.
	Sums(ctx context.Context, b Block) ([]Sum, error)
	// Undo takes the last Interior back: now and next change places again, halos included.
	Undo() error
	// CopyRows copies rows [s.Lo, s.Hi), which lie in the stripe, of now to dst, dense.
	CopyRows(ctx context.Context, s Stripe, dst []byte) error
	// Limits says what the backend can and wants.
	Limits() Limits
	Close() error
}

// Limits describe a backend once it is open.
type Limits struct {
	MaxSweeps int   // most sweeps in one block
	Lag       int   // 0: Sums of a block is ready after Interior; 1: it waits for a device, ask one block later
	Bytes     int64 // memory for fields, halos and scratch
}

// Exchange moves edge rows between neighbours. Writing mine and theirs for two ranks' fields at the start of
// block b, the rank below owning rows [h, ...): after Post(b) on both ranks and Wait(b) on mine,
//
//	mine.now[h+i] == theirs.now[h+i], 0 <= i < Depth, and so for every side that has a neighbour.
type Exchange interface {
	// Post sends the edge rows that block index will read; called between Edges and Interior of the block before.
	Post(ctx context.Context, block uint64) error
	// Wait fills the halos that block index reads; called after Interior of the block before.
	Wait(ctx context.Context, block uint64) error
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

// Contribution is what one rank gives to, and all ranks get from, the reduction of a block.
type Contribution struct {
	Sums  []Sum // one a sweep
	Flags Flags // of this rank; in a total: of any rank
}

// Reducer adds contributions over all ranks; every rank gets the same, to the bit.
type Reducer interface {
	// Post hands in this rank's contribution to a block and does not wait for others. Blocks come in order.
	Post(ctx context.Context, block uint64, c Contribution) error
	// Wait returns the total of a block that was posted, once and in order.
	Wait(ctx context.Context, block uint64) (Contribution, error)
}
