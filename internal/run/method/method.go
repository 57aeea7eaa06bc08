// Package method opens the method of a run on the device of a rank. Callers use the Method and never ask which one it
// is.
package method

import (
	"context"
	"time"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/compute/accuracy"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/setup"
	"jacobi/solver"
	"jacobi/solver/jacobi"
	"jacobi/solver/multigrid"
)

// Method is the method of a run on the rows of a rank.
type Method interface {
	// Load loads the field, which CopyRows reads.
	Load(ctx context.Context, rows solver.RowSource) error
	solver.Rows
	// Begin prepares a run whose field is loaded. direction is what else State has, and aggregates what Aggregates had
	// returned; nil and 0 at the start of a run.
	Begin(ctx context.Context, direction solver.RowSource, aggregates int) error
	// State is what a checkpoint keeps, in a number of arrays as in checkpoint.Manifest.
	State() (rows solver.Rows, arrays int)
	// Aggregates returns the number of cycles after which aggregates took over; 0 as long as they have not.
	Aggregates() int
	// FirstSum updates the loaded field once and returns the sum of this rank.
	FirstSum(ctx context.Context) (solver.Sum, error)
	// Connect opens the exchange of rows with the neighbours, over links or, where there are windows, peer memory. all
	// has the windows by rank; it is empty unless setup.Options.ReachAll holds and all are mapped.
	Connect(links [2]solver.RowLink, neighbours [2]*cuda.Window, all []*cuda.Window) error
	// PeerTraffic returns the traffic over peer memory after the given numbers of exchanges posted and received.
	PeerTraffic(posted, received uint64) Traffic
	// Iteration returns the method at work, after start iterations that led from initial to the loaded field.
	Iteration(start int, initial solver.RowSource, sums *solver.Reductions) (solver.Iteration, error)
	Memory() int64 // bytes in use of the memory of the device
	About() Facts
}

// Facts describe a Method.
type Facts struct {
	Device string // for reports
	Kernel string // of the CPU; "" on a GPU
	GPU    GPU    // nil if the CPU computes
	// Correction is that of outputs.Options.
	Correction func(context.Context) (accuracy.Changes, error)
	Rounding   func() (lever *multigrid.Lever, shown bool) // that of outputs.Options
}

// About implements Method.
func (f Facts) About() Facts { return f }

// GPU is a stripe on a GPU, with any method.
type GPU interface {
	OpenWindow(ranks int) error
	OfferWindow(rank int) ([]byte, error)
	MapWindow(offer []byte) (*cuda.Window, error)
	Timeline(keep int, on solver.OnWork) (*cuda.Timeline, error)
}

// Traffic is what a rank has sent to its neighbours and received from them.
type Traffic struct{ Exchanges, Sent, Received uint64 }

// Options are what a method is opened with.
type Options struct {
	*setup.Setup
	Layout  solver.Layout // of this rank
	Rank    int
	Comm    *roster.Comm
	Driver  *driver.Driver // nil: the CPU computes
	GPU     cuda.Options
	CPU     cpu.Options
	Timeout time.Duration           // of a step in which ranks wait for each other to read files
	Room    func(bytes int64) error // that of multigrid.Grid
	OnClose func(func() error)      // has what is open closed, the newest first
}

// Open opens the method of a set-up. All ranks call it.
func Open(ctx context.Context, o Options) (Method, error) {
	if o.Levels != nil {
		return openCycles(ctx, o)
	}
	return OpenSweeps(o)
}

// Sweeps is Jacobi's method.
type Sweeps struct {
	solver.Backend
	Exchange solver.Exchange
	Facts
	o   Options
	gpu *cuda.Backend // Backend, if that is a *cuda.Backend
}

// OpenSweeps opens Jacobi's method.
func OpenSweeps(o Options) (*Sweeps, error) {
	s := &Sweeps{o: o}
	if o.Driver != nil {
		b, err := cuda.New(o.Driver, o.Layout, o.GPU)
		if err != nil {
			return nil, err
		}
		s.Backend, s.gpu, s.Facts = b, b, Facts{Device: b.Describe(), GPU: b}
	} else {
		b, err := cpu.New(o.Layout, o.CPU)
		if err != nil {
			return nil, err
		}
		s.Backend, s.Facts = b, Facts{Device: b.Describe(), Kernel: b.Kernel()}
	}
	o.OnClose(s.Backend.Close)
	return s, nil
}

// Begin implements Method.
func (*Sweeps) Begin(context.Context, solver.RowSource, int) error { return nil }

// Aggregates implements Method.
func (*Sweeps) Aggregates() int { return 0 }

// State implements Method. The backend may be a checkpoint.Pinner.
func (s *Sweeps) State() (rows solver.Rows, arrays int) { return s.Backend, 0 }

// FirstSum implements Method.
func (s *Sweeps) FirstSum(ctx context.Context) (solver.Sum, error) {
	p := solver.Pass{First: s.o.Layout.Norms.First, Sweeps: 1}
	if err := s.Interior(ctx, p); err != nil {
		return solver.Sum{}, err
	}
	sums, err := s.Sums(ctx, p)
	if err != nil {
		return solver.Sum{}, err
	}
	return sums[0], nil
}

// Connect implements Method.
func (s *Sweeps) Connect(links [2]solver.RowLink, neighbours [2]*cuda.Window, _ []*cuda.Window) error {
	if s.gpu == nil {
		s.Exchange = solver.NewHostExchange(links, solver.HostOptions{})
		return nil
	}
	x, err := cuda.NewExchange(s.gpu, s.o.Ranks == 1, neighbours, links)
	if err != nil {
		return err
	}
	s.o.OnClose(x.Close)
	s.Exchange = x
	return nil
}

// PeerTraffic implements Method. The GPUs copy Depth rows each way in an exchange.
func (s *Sweeps) PeerTraffic(posted, received uint64) Traffic {
	rows := uint64(s.o.Layout.Depth) * uint64(s.o.Layout.Mesh.RowBytes())
	return Traffic{Exchanges: posted, Sent: rows * posted, Received: rows * received}
}

// Iteration implements Method.
func (s *Sweeps) Iteration(start int, initial solver.RowSource, sums *solver.Reductions) (solver.Iteration, error) {
	return jacobi.New(s.Backend, s.Exchange, sums.Watch, jacobi.Options{
		Depth: s.o.Layout.Depth, MaxSweeps: s.o.Layout.MaxSweeps, Sweeps: start, Norms: s.o.Layout.Norms,
		Initial: initial, Ahead: s.o.Ahead,
	})
}

// Memory implements Method.
func (s *Sweeps) Memory() int64 { return s.Limits().Bytes }
