package solver_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"jacobi/solver"
	"jacobi/solver/exchangetest"
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
