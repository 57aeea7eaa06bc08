package method

import (
	"context"

	"jacobi/cuda"
	"jacobi/internal/compute/cpu"
	"jacobi/solver"
	"jacobi/solver/jacobi"
)

// Sweeps is Jacobi's method.
type Sweeps struct {
	solver.Backend
	Exchange solver.Exchange
	Facts
	o   Options
	gpu *cuda.Backend // Backend, if that is a *cuda.Backend
}

func openSweeps(o Options) (*Sweeps, error) {
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
func (*Sweeps) Begin(context.Context, solver.RowSource) error { return nil }

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
		Depth: s.o.Layout.Depth, MaxSweeps: s.o.Sweeps, Sweeps: start, Norms: s.o.Layout.Norms, Initial: initial,
		Ahead: s.o.Ahead,
	})
}

// Memory implements Method.
func (s *Sweeps) Memory() int64 { return s.Limits().Bytes }
