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
	// HaloRows are those of Depth rows: CopyEdge copies from next, between Edges and Interior, and SetHalo fills the
	// halos of now, between Interior and the next Edges or Interior.
	HaloRows
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

// Pass is Sweeps sweeps of a stripe, beginning with sweep number First, for one read of the field now and one write of
// the field next. It computes rows [Lo-Margin, Hi+Margin), as far as they are interior rows or, beyond a side with a
// neighbour, halo rows, and reads Sweeps rows more on each side. Margin is 0 in the last pass before an exchange. Norms
// count rows [Lo, Hi) only.
type Pass struct {
	Index  uint64 // 0, 1, 2, ...; a replayed pass keeps its index
	First  int
	Sweeps int
	Margin int
}

// Reader reads rows of a mesh that do not change, and knows some of them to be the same as the row above. What holds
// them then reads one and copies it.
type Reader struct {
	// Row writes row iy, 0 <= iy < NY, to dst. Several goroutines may call it at once.
	Row func(iy int, dst []byte) error
	// repeats reports whether row iy, 0 < iy < NY, is known to be row iy-1; nil if that is known of no row.
	repeats func(iy int) bool
}

// RowRepeater is a RowSource that knows repeated rows.
type RowRepeater interface {
	// RowRepeats reports whether row iy, 0 < iy < NY, is row iy-1, byte for byte. False is always allowed.
	RowRepeats(iy int) bool
}

// ValueRepeater is a ValueRows that knows repeated rows.
type ValueRepeater interface {
	// ValueRepeats reports the same of rows of value k.
	ValueRepeats(iy int, k Value) bool
}

// RowsOf returns a reader of the rows of a field.
func RowsOf(rows RowSource) Reader {
	r := Reader{Row: rows.Row}
	if known, ok := rows.(RowRepeater); ok {
		r.repeats = known.RowRepeats
	}
	return r
}

// ValuesOf returns a reader of a value of the points of an operator.
func ValuesOf(values ValueRows, k Value) Reader {
	r := Reader{Row: func(iy int, dst []byte) error { return values.ValueRow(iy, k, dst) }}
	if known, ok := values.(ValueRepeater); ok {
		r.repeats = func(iy int) bool { return known.ValueRepeats(iy, k) }
	}
	return r
}

// Repeats reports whether row y is the same as row y-1. Rows may lie in halos, as those of Mesh.Canonical.
func (r Reader) Repeats(m Mesh, y int) bool {
	if r.repeats == nil {
		return false
	}
	above, ok := m.Canonical(y - 1)
	here, exists := m.Canonical(y)
	return ok && exists && here == above+1 && r.repeats(here)
}

// stallSweeps is the number of norms in a row with norm[k] == norm[k-2] at which a run has stalled.
const stallSweeps = 100

// StopNorms is the number of preceding norms that Repeats needs to judge the next one.
const StopNorms = stallSweeps + 1

// Repeats is the Stall of sweeps: a norm and the stallSweeps-1 norms before it each equal, to the bit, the norm two
// sweeps earlier. In exact arithmetic norms fall with every sweep. Once only rounding is left, the field reaches a
// fixed point or alternates between two states, and its norm never meets a smaller tolerance.
type Repeats struct {
	last, before float64 // the two newest norms
	seen         int     // norms added
	repeats      int     // newest norms in a row that equal the last but one norm before them
}

// Add implements Stall.
func (s *Repeats) Add(norm float64) bool {
	s.repeats++
	if s.seen < 2 || norm != s.before {
		s.repeats = 0
	}
	s.last, s.before = norm, s.last
	s.seen++
	return s.repeats >= stallSweeps
}

// Within implements Stall.
func (s *Repeats) Within(n int) bool { return s.repeats > 0 && s.repeats+n >= stallSweeps }
