// Package solver is the Jacobi iteration over one stripe: what is computed, in which order, and when it ends. It knows
// no device and no network; it meets them as Backend, Exchange and Reducer.
package solver

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Options of Run. All ranks must be given the same, but for Stop, Saver and the callbacks; all or none have a Saver.
type Options struct {
	Initial       RowSource // the field at sweep 0, should it be needed again
	Start         Start     // where the field that the backend has loaded stands
	Magnitude     Magnitude
	Depth         int     // rows in a halo, as in the backend's Layout
	MaxSweeps     int     // most sweeps in a block, at most what each rank's backend can
	Tolerance     float64 // see StopRule
	MaxIterations int     // most sweeps
	// Stop, if not nil, is asked once a block whether this rank was told to stop. All ranks stop at one sweep.
	Stop func() bool
	// Saver, if not nil, saves the state: every SaveEvery sweeps (0: never of itself) and when a rank wishes it, at the end of the
	// block then, and not before all ranks are done with the state before.
	Saver     Saver
	SaveEvery int
	// OnNorms, if not nil, gets the norms of sweeps first, first+1, ... once they are final, in order.
	OnNorms func(first int, norms []float64) error
}

// Result of Run.
type Result struct {
	Sweeps   int
	Norm     float64 // of the last sweep
	Reason   StopReason
	Decisive *Decisive // the norm that ended the run; nil if none did
	Times    Times
}

// Decisive is the norm that ended a run. The last sweep is the one after it, unless max_iterations left no room for it.
type Decisive struct {
	Sweep int
	Norm  float64
}

// Times are wall-clock times of one rank within Run, by the clock of the host: a device may sweep during the waits.
type Times struct {
	Total    time.Duration // first sweep to last
	Compute  time.Duration // in the backend: sweeping, or launching sweeps and waiting for their sums
	HaloWait time.Duration // sending, and waiting for neighbours' rows
	NormWait time.Duration // handing sums in, and waiting for those of other ranks
	Save     time.Duration // copying the state for the Saver
}

// NotFiniteError says that the norm of a sweep was no finite number.
type NotFiniteError struct {
	Sweep int
	Norm  float64
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("sweep %d: the norm is %v: the field has left the range of its type or was damaged", e.Sweep, e.Norm)
}

// Run sweeps from the initial field, which the backend has loaded, until the run ends. Afterwards the backend's now is the
// field after exactly Result.Sweeps sweeps. The sequence of calls to Exchange and Reducer is a function of the options and of the
// reduced sums alone, so all ranks of a run make the same calls.
func Run(ctx context.Context, b Backend, x Exchange, red Reducer, o Options) (Result, error) {
	if most := b.Limits().MaxSweeps; o.MaxSweeps < 1 || o.MaxSweeps > most {
		return Result{}, fmt.Errorf("%d sweeps a block: the backend does 1 to %d", o.MaxSweeps, most)
	}
	r := &run{Options: o, backend: b, exchange: x, reducer: red, lag: b.Limits().Lag, valid: o.Depth, stop: math.MaxInt,
		rule: StopRule{Tolerance: o.Tolerance}}
	if err := r.begin(); err != nil {
		return Result{}, err
	}
	start := time.Now()
	err := r.loop(ctx)
	if err == nil {
		err = r.land(ctx)
	}
	r.times.Total = time.Since(start)
	if err != nil {
		return Result{Sweeps: r.sweeps}, err
	}
	return Result{Sweeps: r.sweeps, Norm: r.norm, Reason: r.reason, Decisive: r.decisive, Times: r.times}, nil
}

// run is the state of a Run.
//
// Blocks pass through three states: swept (Interior was called), posted (its sums were handed to the reducer) and settled
// (its norms are known here and, the same, everywhere). Settling lags one block behind sweeping, so that no rank waits
// for a norm, unless the norms of the newest block could end the run inside it: then its source must not be overwritten yet.
type run struct {
	Options
	backend  Backend
	exchange Exchange
	reducer  Reducer
	lag      int

	sweeps   int     // swept so far: now is the field after this many
	valid    int     // halo rows of now that are right
	blocks   []Block // swept but not settled, oldest first; at most two
	last     Block   // the newest swept block
	index    uint64  // of the next block
	posted   uint64  // blocks below this were posted
	sent     uint64  // exchanges posted
	received uint64  // exchanges waited for

	rule      StopRule
	decisive  *Decisive // once it has ended the run
	forecast  forecast
	norm      float64    // newest final norm
	stop      int        // sweeps after which the run ends; MaxInt while open
	reason    StopReason // once stop is set
	interrupt bool       // a settled block carried a stop request
	saving    saving
	times     Times
}

// loop sweeps until the end of the run is decided and every norm up to it is settled.
func (r *run) loop(ctx context.Context) error {
	for r.sweeps < r.end() {
		if r.newestMayStop() {
			if err := r.settle(ctx, 0); err != nil {
				return err
			}
			if r.sweeps >= r.end() {
				break
			}
		}
		if err := r.sweep(ctx, r.end()); err != nil {
			return err
		}
		if err := r.settle(ctx, 1); err != nil {
			return err
		}
		if err := r.save(ctx); err != nil {
			return err
		}
	}
	if err := r.settle(ctx, 0); err != nil {
		return err
	}
	if r.sweeps < r.end() { // the last block brought a stop one sweep beyond it
		return r.loop(ctx)
	}
	return nil
}

// end returns the number of sweeps that the run is to do as far as is known.
func (r *run) end() int {
	switch {
	case r.stop < math.MaxInt:
		return r.stop
	case r.interrupt:
		return r.sweeps
	default:
		return r.MaxIterations
	}
}

// newestMayStop reports whether the newest swept block, not settled yet, might hold a sweep after which the run ends
// before that block's last sweep. Its source field is then needed to replay it.
func (r *run) newestMayStop() bool {
	if r.stop < math.MaxInt || len(r.blocks) == 0 {
		return false
	}
	b := r.blocks[len(r.blocks)-1]
	decisive := b.First + b.Sweeps - 2 // a norm met here or before ends the run within b
	if decisive < b.First {
		return false
	}
	return !r.forecast.excludes(decisive, r.Tolerance) || r.rule.mayStall(decisive-r.forecast.sweep)
}

// nextBlock plans the block that follows, which does not go beyond end sweeps.
func (r *run) nextBlock(end int) Block {
	valid := r.valid
	if valid == 0 {
		valid = r.Depth // after the exchange
	}
	t := min(valid, r.MaxSweeps, end-r.sweeps)
	b := Block{Index: r.index, First: r.sweeps, Sweeps: t, Margin: valid - t}
	if r.sweeps+t == end {
		b.Margin = 0 // nobody will read the halo
	}
	return b
}

// sweep does one block of a run that is to do end sweeps: halos in, edges first, edges out, interior.
func (r *run) sweep(ctx context.Context, end int) error {
	b := r.nextBlock(end)
	if r.valid == 0 {
		if err := r.receive(ctx); err != nil {
			return fmt.Errorf("sweep %d: halo exchange: %w", b.First, err)
		}
	}
	if b.Margin == 0 && b.First+b.Sweeps < end {
		if err := r.timed(&r.times.Compute, func() error { return r.backend.Edges(ctx, b) }); err != nil {
			return fmt.Errorf("sweep %d: edges: %w", b.First, err)
		}
		if err := r.timed(&r.times.HaloWait, func() error { return r.exchange.Post(ctx, r.sent+1) }); err != nil {
			return fmt.Errorf("sweep %d: halo exchange: %w", b.First, err)
		}
		r.sent++
	}
	if err := r.timed(&r.times.Compute, func() error { return r.backend.Interior(ctx, b) }); err != nil {
		return fmt.Errorf("sweep %d: interior: %w", b.First, err)
	}
	r.sweeps += b.Sweeps
	r.valid = b.Margin
	r.blocks = append(r.blocks, b)
	r.last = b
	r.index++
	return r.post(ctx, r.lag)
}

// receive fills the halos of now.
func (r *run) receive(ctx context.Context) error {
	err := r.timed(&r.times.HaloWait, func() error { return r.exchange.Wait(ctx, r.received+1) })
	if err != nil {
		return err
	}
	r.received++
	r.valid = r.Depth
	return nil
}

// post hands the sums of all swept blocks but the newest lag to the reducer.
func (r *run) post(ctx context.Context, lag int) error {
	for _, b := range r.blocks[:max(0, len(r.blocks)-lag)] {
		if b.Index < r.posted {
			continue
		}
		var sums []Sum
		err := r.timed(&r.times.Compute, func() (err error) {
			sums, err = r.backend.Sums(ctx, b)
			return err
		})
		if err != nil {
			return fmt.Errorf("sweep %d: norm: %w", b.First, err)
		}
		err = r.timed(&r.times.NormWait, func() error {
			return r.reducer.Post(ctx, b.Index, Contribution{Sums: sums, Flags: r.flags()})
		})
		if err != nil {
			return fmt.Errorf("sweep %d: norm: %w", b.First, err)
		}
		r.posted = b.Index + 1
	}
	return nil
}

// settle waits for the norms of all swept blocks but the newest keep.
func (r *run) settle(ctx context.Context, keep int) error {
	if err := r.post(ctx, keep); err != nil {
		return err
	}
	for len(r.blocks) > keep {
		b := r.blocks[0]
		var total Contribution
		err := r.timed(&r.times.NormWait, func() (err error) {
			total, err = r.reducer.Wait(ctx, b.Index)
			return err
		})
		if err != nil {
			return fmt.Errorf("sweep %d: norm: %w", b.First, err)
		}
		if len(total.Sums) != b.Sweeps {
			return fmt.Errorf("sweep %d: norm: %d sums for %d sweeps", b.First, len(total.Sums), b.Sweeps)
		}
		r.blocks = r.blocks[1:]
		r.hear(b, total.Flags)
		if err := r.decide(b, total.Sums); err != nil {
			return err
		}
	}
	return nil
}

// decide applies the stop rule to the norms of a settled block and passes the final ones on.
func (r *run) decide(b Block, sums []Sum) error {
	norms := make([]float64, 0, len(sums))
	for i, s := range sums {
		sweep := b.First + i
		if sweep >= r.stop {
			break
		}
		norm := s.Norm(r.Magnitude)
		if math.IsNaN(norm) || math.IsInf(norm, 0) {
			return &NotFiniteError{Sweep: sweep, Norm: norm}
		}
		r.judge(sweep, norm)
		norms = append(norms, norm)
	}
	if r.OnNorms == nil || len(norms) == 0 {
		return nil
	}
	return r.OnNorms(b.First, norms)
}

// judge applies the stop rule to the norm of the next sweep.
func (r *run) judge(sweep int, norm float64) {
	if r.stop == math.MaxInt {
		if reason := r.rule.Add(norm); reason != "" {
			r.stop, r.reason = min(sweep+2, r.MaxIterations), reason
			r.decisive = &Decisive{Sweep: sweep, Norm: norm}
		}
	}
	r.forecast.add(sweep, norm)
	r.norm = norm
}

// flags returns what this rank says with its sums.
func (r *run) flags() (f Flags) {
	if r.Stop != nil && r.Stop() {
		f |= FlagStop
	}
	if r.Saver != nil && r.Saver.Wanted() {
		f |= FlagSave
	}
	if r.Saver != nil && r.Saver.Busy() {
		f |= FlagBusy
	}
	return f
}

// hear takes what ranks said with the sums of a settled block.
func (r *run) hear(b Block, f Flags) {
	r.interrupt = r.interrupt || f&FlagStop != 0
	r.saving.hear(b, f)
}

// land makes now the field after exactly end() sweeps.
func (r *run) land(ctx context.Context) error {
	end := r.end()
	if r.reason == "" {
		r.reason = MaxIterations
		if r.interrupt && end < r.MaxIterations {
			r.reason = Interrupted
		}
	}
	if r.sweeps == end {
		return nil
	}
	if end < r.last.First {
		return r.rewind(ctx, end)
	}
	if err := r.backend.Undo(); err != nil {
		return fmt.Errorf("sweep %d: undo: %w", r.last.First, err)
	}
	r.sweeps = r.last.First
	if end > r.sweeps {
		b := Block{Index: r.last.Index, First: r.sweeps, Sweeps: end - r.sweeps}
		if err := r.timed(&r.times.Compute, func() error { return r.backend.Interior(ctx, b) }); err != nil {
			return fmt.Errorf("sweep %d: replay: %w", b.First, err)
		}
	}
	r.sweeps = end
	return nil
}

// rewind starts again from the initial field and does end sweeps. It serves the rare run whose norm fell to the tolerance
// faster than the forecast allows, so that the field to replay from is gone.
func (r *run) rewind(ctx context.Context, end int) error {
	if r.received < r.sent { // neighbours did send; their rows must not be taken for later ones
		if err := r.receive(ctx); err != nil {
			return fmt.Errorf("rewind: halo exchange: %w", err)
		}
	}
	if err := r.backend.Load(ctx, r.Initial); err != nil {
		return fmt.Errorf("rewind: load the initial field: %w", err)
	}
	r.sweeps, r.valid = 0, r.Depth
	for r.sweeps < end {
		if err := r.sweepUncounted(ctx, end); err != nil {
			return fmt.Errorf("rewind: %w", err)
		}
	}
	return nil
}

// sweepUncounted is sweep for a block whose norms are known already.
func (r *run) sweepUncounted(ctx context.Context, end int) error {
	r.posted = r.index + 1
	err := r.sweep(ctx, end)
	r.blocks = r.blocks[:0]
	return err
}

func (r *run) timed(total *time.Duration, f func() error) error {
	start := time.Now()
	err := f()
	*total += time.Since(start)
	return err
}
