package solver_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"jacobi/solver"
	"jacobi/solver/exchangetest"
	"jacobi/solver/jacobi"
)

// slow is a backend on a device: launches return at once, and Sums returns when the device has swept the pass.
type slow struct {
	*plain
	pass time.Duration
}

func (s slow) Sums(ctx context.Context, b solver.Pass) ([]solver.Sum, error) {
	time.Sleep(s.pass)
	return s.plain.Sums(ctx, b)
}

// others is a reducer whose Wait takes the time that other ranks need.
type others struct {
	*exchangetest.Reducer
	wait time.Duration
}

func (o others) Wait(ctx context.Context, pass uint64) (solver.Contribution, error) {
	time.Sleep(o.wait)
	return o.Reducer.Wait(ctx, pass)
}

// Waiting for the own device counts as computing; only waiting for other ranks' sums counts as waiting for norms. The
// steps add up to the same times.
func TestTimesTellTheDeviceFromTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const passes = 5
		f := formula{mesh: solver.Mesh{NX: 8, NY: 12, DType: solver.Float64}, value: bump}
		l := solver.Layout{Mesh: f.mesh, Stripe: f.mesh.Interior(), Depth: 2}
		limits := solver.Limits{MaxSweeps: 2, Lag: 1}
		p := newPlain(t, l, limits)
		if err := p.Load(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		x := solver.NewHostExchange([2]solver.RowLink{}, solver.HostOptions{})
		device, reducer := slow{p, 30 * time.Millisecond}, others{exchangetest.NewReducer(1), 2 * time.Millisecond}
		shares := map[solver.Share]time.Duration{}
		onStep := func(s solver.Step, _ time.Time, took time.Duration) { shares[s.Kind.Share()] += took }
		result, err := run(t.Context(), device, x, reducer,
			options{Initial: f, Depth: 2, MaxSweeps: 2, MaxIterations: 2 * passes, OnStep: onStep})
		if err != nil {
			t.Fatal(err)
		}
		const sums, norms = passes * 30 * time.Millisecond, passes * 2 * time.Millisecond
		want := solver.Times{Total: sums + norms, Compute: sums, NormWait: norms, Exchanges: passes - 1}
		if result.Times != want {
			t.Errorf("times %+v, want %+v", result.Times, want)
		}
		if shares[solver.ShareCompute] != sums || shares[solver.ShareNormWait] != norms || len(shares) != 3 {
			t.Errorf("steps %v, want the same", shares)
		}
	})
}

// slowRows is a backend whose copies and sweeps take time.
type slowRows struct{ *plain }

func (s slowRows) CopyEdge(ctx context.Context, side solver.Side, dst []byte) error {
	time.Sleep(3 * time.Millisecond)
	return s.plain.CopyEdge(ctx, side, dst)
}

func (s slowRows) SetHalo(ctx context.Context, side solver.Side, src []byte) error {
	time.Sleep(5 * time.Millisecond)
	return s.plain.SetHalo(ctx, side, src)
}

func (s slowRows) Interior(ctx context.Context, p solver.Pass) error {
	time.Sleep(7 * time.Millisecond)
	return s.plain.Interior(ctx, p)
}

// timedLink is a slow link to the rank itself, which is told how long copies take.
type timedLink struct {
	rows      []byte
	out, back time.Duration
}

func (l *timedLink) Send(_ context.Context, _ solver.ExchangeNumber, rows []byte) error {
	time.Sleep(time.Second)
	l.rows = append(l.rows[:0], rows...)
	return nil
}

func (l *timedLink) Recv(_ context.Context, _ solver.ExchangeNumber, rows []byte) error {
	time.Sleep(time.Second)
	copy(rows, l.rows)
	return nil
}

func (l *timedLink) CopiedEdge(d time.Duration) { l.out += d }
func (l *timedLink) CopiedHalo(d time.Duration) { l.back += d }

// A link that asks for it learns how long its own side's copies take, without the time of the link itself.
func TestLinkLearnsOfCopies(t *testing.T) {
	for name, background := range map[string]bool{"in turn": false, "background": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := formula{mesh: solver.Mesh{NX: 8, NY: 20, DType: solver.Float64}, value: bump}
				l := solver.Layout{Mesh: f.mesh, Stripe: solver.Stripe{Lo: 1, Hi: 8}, Depth: 2,
					Neighbour: [2]bool{solver.Bottom: true}}
				p := newPlain(t, l, solver.Limits{MaxSweeps: 2})
				if err := p.Load(t.Context(), f); err != nil {
					t.Fatal(err)
				}
				link := new(timedLink)
				x := solver.NewHostExchange([2]solver.RowLink{solver.Bottom: link},
					solver.HostOptions{Background: background})
				engine, err := jacobi.New(slowRows{p}, x, &solver.Watch{},
					jacobi.Options{Depth: 2, MaxSweeps: 2})
				if err != nil {
					t.Fatal(err)
				}
				for range 4 { // with 3 exchanges
					if _, err := engine.Advance(t.Context(), 8, 8); err != nil {
						t.Fatal(err)
					}
				}
				if link.out != 9*time.Millisecond || link.back != 15*time.Millisecond {
					t.Errorf("copies of %v and %v, want 9ms and 15ms", link.out, link.back)
				}
			})
		})
	}
}
