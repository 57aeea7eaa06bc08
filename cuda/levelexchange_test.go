package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/internal/compute/reference"
	"jacobi/solver"
	"jacobi/solver/exchangetest"
	"jacobi/solver/multigrid"
)

// uneven is an initial field.
type uneven struct{ mesh solver.Mesh }

// Row implements solver.RowSource.
func (u uneven) Row(y int, dst []byte) error {
	if u.mesh.PeriodicRows() {
		y = 1 + (y-1+u.mesh.NY-2)%(u.mesh.NY-2)
	}
	for x := range u.mesh.NX {
		v := float64((y*131+x*71)%257)/257 - 0.5
		binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(v))
	}
	return nil
}

// zoned are ranks of this process that write into each other's windows, except where the sides of two have links.
type zoned struct {
	driver       *driver.Driver
	plan         *multigrid.Plan
	stripes      [][]solver.Stripe
	agglomerated int
	linked       func(rank int, side solver.Side) bool // nil: nowhere
	links        [][2]solver.RowLink
	sole         bool
	levels       []*Levels
	exchanges    []*LevelExchange
}

func newZoned(t *testing.T, d *driver.Driver, mesh solver.Mesh, ranks int) *zoned {
	t.Helper()
	z := &zoned{driver: d, levels: make([]*Levels, ranks), exchanges: make([]*LevelExchange, ranks)}
	var err error
	if z.plan, err = multigrid.NewPlan(mesh, solver.Operator{}); err != nil {
		t.Fatal(err)
	}
	stripes, err := solver.Partition(mesh.Interior(), ranks, 1)
	if err != nil {
		t.Fatal(err)
	}
	z.stripes, z.agglomerated = z.plan.Divide(stripes, 500)
	layouts := make([]solver.Layout, ranks)
	for r := range ranks {
		layouts[r] = solver.Layout{Mesh: mesh, Neighbour: z.plan.LayoutOf(z.stripes, z.agglomerated, r).Neighbour}
	}
	z.links = exchangetest.Links(layouts)
	return z
}

// open opens a rank with its window.
func (z *zoned) open(ctx context.Context, rank int, o Options) error {
	v, err := NewLevels(z.driver, z.plan.LayoutOf(z.stripes, z.agglomerated, rank), o)
	if err != nil {
		return err
	}
	z.levels[rank] = v
	if err := v.OpenWindow(len(z.levels)); err != nil {
		return err
	}
	return v.Load(ctx, uneven{z.plan.Levels[0].Mesh})
}

// connect opens the exchange of a rank once all ranks are open.
func (z *zoned) connect(rank int) error {
	v := z.levels[rank]
	host := solver.NewHostExchange(z.links[rank], solver.HostOptions{Rank: rank,
		Most: multigrid.HaloDepth * z.plan.Levels[0].Mesh.RowBytes()})
	var neighbours [2]*Window
	all := make([]*Window, len(z.levels))
	for r, other := range z.levels {
		if r != rank {
			all[r] = &Window{memory: []driver.DevicePtr{other.window.base}}
		}
	}
	for i, has := range v.layout.Neighbour {
		side := solver.Side(i)
		if has && (z.linked == nil || !z.linked(rank, side)) {
			neighbours[side] = all[exchangetest.Neighbour(z.plan.Levels[0].Mesh, len(all), rank, side)]
		}
	}
	if z.linked != nil {
		all = nil
	}
	var err error
	z.exchanges[rank], err = NewLevelExchange(v, host, rank, neighbours, all, z.sole)
	return err
}

// grid returns the finest mesh of a rank.
func (z *zoned) grid(rank int) multigrid.Grid {
	return multigrid.Grid{Device: z.levels[rank], Layout: z.levels[rank].layout, Stripes: z.stripes, Rank: rank,
		Exchange: z.exchanges[rank]}
}

// cycle does a cycle of a rank, as multigrid.Iteration does.
func (z *zoned) cycle(ctx context.Context, rank int) error {
	v := z.levels[rank]
	x := z.grid(rank)
	errs := []error{x.FillHalos(ctx, 0, multigrid.Unknowns)}
	for l := range z.agglomerated {
		if l > 0 {
			errs = append(errs, x.FillHalos(ctx, l, multigrid.RightSide))
		}
		errs = append(errs, v.Down(ctx, l))
	}
	errs = append(errs, x.Exchange.Gather(ctx, x.RankBlocks(multigrid.RightSide)), v.Agglomerate(ctx))
	for l := z.agglomerated - 1; l >= 0; l-- {
		if l+1 < z.agglomerated {
			errs = append(errs, x.FillHalos(ctx, l+1, multigrid.Unknowns))
		}
		errs = append(errs, v.Up(ctx, l))
	}
	return errors.Join(errs...)
}

// check compares the fields of all ranks with the oracle after some cycles.
func (z *zoned) check(ctx context.Context, cycles int) error {
	mesh := z.plan.Levels[0].Mesh
	oracle, err := reference.NewMultigrid(z.plan, solver.Operator{}, uneven{mesh}, 0)
	if err != nil {
		return err
	}
	for range cycles {
		oracle.Cycle()
	}
	for r, v := range z.levels {
		s := z.stripes[0][r]
		got, want := make([]byte, s.Rows()*mesh.RowBytes()), oracle.Rows(0, s)
		if err := v.CopyRows(ctx, 0, multigrid.Unknowns, s, got); err != nil {
			return err
		}
		for y := range s.Rows() {
			row := y * mesh.RowBytes()
			if !bytes.Equal(got[row+8:row+8*mesh.NX-8], want[row+8:row+8*mesh.NX-8]) {
				return fmt.Errorf("rank %d: row %d of %v differs", r, s.Lo+y, s)
			}
		}
	}
	return nil
}

// GPUs that write into each other's memory do the cycles of one GPU. The host waits for nothing: one goroutine queues
// all cycles of a rank before those of the next one.
func TestLevelExchange(t *testing.T)         { levelExchange(t, need(t)) }
func TestLevelExchangeOnFibers(t *testing.T) { levelExchange(t, emulated(t)) }

func levelExchange(t *testing.T, d *driver.Driver) {
	const cycles = 3
	for _, c := range []struct {
		ny, ranks int
		walls     solver.Walls
	}{
		{300, 3, solver.Walls{}},
		{302, 2, solver.WrapRows(true)}, // both neighbours are one rank
		{305, 4, solver.WrapRows(true)},
		{160, 3, solver.Walls{Top: solver.Neumann}},
	} {
		t.Run(fmt.Sprintf("%d rows %v ranks %d", c.ny, c.walls, c.ranks), func(t *testing.T) {
			z := newZoned(t, d, solver.Mesh{NX: 61, NY: c.ny, DType: solver.Float64, Walls: c.walls}, c.ranks)
			ctx := t.Context()
			for r := range c.ranks {
				if err := z.open(ctx, r, Options{}); err != nil {
					t.Fatal(err)
				}
				defer z.levels[r].Close()
			}
			for r := range c.ranks {
				if err := z.connect(r); err != nil {
					t.Fatal(err)
				}
			}
			for r := range c.ranks {
				for range cycles {
					if err := z.cycle(ctx, r); err != nil {
						t.Fatal(err)
					}
				}
			}
			for r, x := range z.exchanges {
				if err := x.Drain(ctx); err != nil {
					t.Fatalf("rank %d: %v", r, err)
				}
			}
			if err := z.check(ctx, cycles); err != nil {
				t.Fatal(err)
			}
			for r, x := range z.exchanges {
				exchanges, sent := x.Traffic()
				rows := 0
				for l := range z.agglomerated {
					n := multigrid.HaloDepth * pitchOf(z.plan.Levels[l].Mesh)
					rows += n
					if l > 0 {
						rows += n
					}
				}
				want := cycles * (2*z.agglomerated - 1)
				if exchanges != uint64(want) || sent != uint64(cycles*rows) {
					t.Errorf("rank %d: %d exchanges, %d bytes; want %d, %d", r, exchanges, sent, want, cycles*rows)
				}
				if err := x.Close(); err != nil {
					t.Errorf("rank %d: %v", r, err)
				}
			}
		})
	}
}

// Where one pair of neighbours has a link, its rows and all gathers go through the host.
func TestMixedLevelExchange(t *testing.T)         { mixedLevelExchange(t, need(t)) }
func TestMixedLevelExchangeOnFibers(t *testing.T) { mixedLevelExchange(t, emulated(t)) }

func mixedLevelExchange(t *testing.T, d *driver.Driver) {
	const ranks, cycles = 3, 2
	z := newZoned(t, d, solver.Mesh{NX: 61, NY: 300, DType: solver.Float64, Walls: solver.WrapRows(true)}, ranks)
	z.linked = betweenTheFirstTwo
	var opened, done, checked sync.WaitGroup
	opened.Add(ranks)
	checked.Add(1)
	opens, errs := make([]error, ranks), make([]error, ranks)
	for r := range ranks {
		done.Add(1)
		go func() { // a GPU belongs to a thread
			defer checked.Wait()
			defer done.Done()
			opens[r] = z.open(t.Context(), r, Options{Timeout: 20 * time.Second})
			opened.Done()
			opened.Wait()
			if errors.Join(opens...) != nil {
				return
			}
			if errs[r] = z.connect(r); errs[r] != nil {
				return
			}
			for range cycles {
				errs[r] = errors.Join(errs[r], z.cycle(t.Context(), r))
			}
			errs[r] = errors.Join(errs[r], z.exchanges[r].Drain(t.Context()))
		}()
	}
	done.Wait()
	defer checked.Done()
	if err := errors.Join(append(opens, errs...)...); err != nil {
		t.Fatal(err)
	}
	if err := z.check(t.Context(), cycles); err != nil {
		t.Fatal(err)
	}
}

// A neighbour that is gone ends the wait of a rank with its deadline, or with the run, and the exchange and the levels
// close nevertheless.
func TestLevelExchangeWithoutANeighbour(t *testing.T)         { levelExchangeAlone(t, need(t)) }
func TestLevelExchangeWithoutANeighbourOnFibers(t *testing.T) { levelExchangeAlone(t, emulated(t)) }

func levelExchangeAlone(t *testing.T, d *driver.Driver) {
	z := newZoned(t, d, solver.Mesh{NX: 61, NY: 300, DType: solver.Float64}, 2)
	for r := range z.levels {
		if err := z.open(t.Context(), r, Options{Timeout: 50 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := z.levels[r].Close(); err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		}()
	}
	if err := z.connect(0); err != nil {
		t.Fatal(err)
	}
	x, g := z.exchanges[0], z.grid(0)
	if err := z.cycle(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	var late *TimeoutError
	if _, err := z.levels[0].Sum(t.Context()); !errors.As(err, &late) {
		t.Errorf("the sum of a cycle: %v, want a *TimeoutError", err)
	}
	ended := errors.New("rank 1 ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if err := x.Drain(ctx); !errors.Is(err, ended) {
		t.Errorf("Drain: %v, want %v", err, ended)
	}
	if err := g.FillHalos(ctx, 0, multigrid.Unknowns); !errors.Is(err, ended) {
		t.Errorf("FillHalos: %v, want %v", err, ended)
	}
	queued := 0
	for ; queued < 1000; queued++ { // a driver would not take that many cycles
		if err := z.cycle(t.Context(), 0); errors.As(err, &late) {
			break
		}
	}
	if queued > 2*inFlight/8 {
		t.Errorf("%d cycles were queued behind a neighbour that is gone", queued)
	}
	if err := x.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// The argument of the kernels has the layout that kernels/zone.cu asserts.
func TestMovesLayout(t *testing.T) {
	var a moves
	got := [3]uintptr{unsafe.Sizeof(a.moves[0]), unsafe.Offsetof(a.number), unsafe.Sizeof(a)}
	if want := [3]uintptr{40, 320, 328}; got != want {
		t.Errorf("%d, want %d", got, want)
	}
}
