package outputs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/view"
	"jacobi/solver"
)

const (
	// viewShare is the share of the time that samples for viewers may take, with the sending of their rows, which goes
	// on beside the sweeps. The wait for all norms before a sample has the rest up to 1%.
	viewShare = 0.008
	// Bounds of the interval between samples.
	minViewInterval = 200 * time.Millisecond
	maxViewInterval = time.Minute
	maxViewers      = 8
	maxViewWindows  = 8 // of all viewers
	aboutInterval   = time.Second
	viewMessage     = 256 << 10 // bytes of a message with rows, if the server allows as many
)

// viewers are those who watch the run; internal/observe/view shows them frames of the field. While nobody asks, a pass
// costs one atomic load on rank 0 and nothing on the others.
type viewers struct {
	*Outputs
	field output.View         // as they see it
	run   view.Run            // but for its tolerance
	sub   pubsub.Subscription // nil without a server, and so without viewers
	taken uint64              // samples so far
	// next is when rank 0 asks for a sample, in nanoseconds since 1970; 0 if nobody wants one.
	next    atomic.Int64
	sending atomic.Bool    // the newest sample is not sent yet
	sends   sync.WaitGroup // used by the goroutine of the run alone

	mu       sync.Mutex
	asks     map[string]viewerAsk
	interval time.Duration // between samples
	cost     time.Duration // of the newest sample
	told     time.Time     // when rank 0 last told of the run
	track    view.Track    // rank 0 only
	norms    int           // known to track
}

// viewerAsk is what a viewer wants, until a time.
type viewerAsk struct {
	view.Ask
	until time.Time
}

// openViewers makes the run answer viewers. All ranks call it.
func (o *Outputs) openViewers() (*viewers, error) {
	v := &viewers{Outputs: o, field: o.seen(), run: o.describeRun(), asks: map[string]viewerAsk{},
		interval: minViewInterval}
	if o.Comm.Conn() == nil {
		return v, nil
	}
	var err error
	if v.sub, err = o.Comm.Conn().Subscribe(o.Comm.Subject(view.AskName), v.receive); err != nil {
		return nil, fmt.Errorf("rank %d: subscribe to %s: %w", o.id.Rank, view.AskName, err)
	}
	return v, nil
}

// sampling returns the samples that viewers want: those for which rank 0 asks.
func (v *viewers) sampling() solver.Sampling {
	s := solver.Sampling{Sampler: v}
	if v.first() {
		s.Wanted = v.wanted
	}
	return s
}

// first reports whether this is rank 0.
func (v *viewers) first() bool { return v.id.Rank == 0 }

// close ends the answers.
func (v *viewers) close() error {
	if v.sub == nil {
		return nil
	}
	err := v.sub.Unsubscribe()
	v.sends.Wait()
	return err
}

// receive handles what a viewer asks.
func (v *viewers) receive(m pubsub.Message) {
	mesh := v.field.Mesh
	a, err := view.ParseAsk(m.Data, mesh.NX, mesh.NY)
	if err != nil {
		return
	}
	if v.keep(a, time.Now()) && v.first() {
		v.tell()
	}
}

// keep keeps what a viewer asks. It reports whether it is time to tell of the run.
func (v *viewers) keep(a view.Ask, now time.Time) (tell bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forget(now)
	if _, known := v.asks[a.Viewer]; !known && len(v.asks) >= maxViewers {
		return false
	}
	v.asks[a.Viewer] = viewerAsk{a, now.Add(view.Lease)}
	cost := time.Duration(min(a.Cost, maxViewInterval.Seconds()) * float64(time.Second))
	v.interval = viewInterval(max(v.cost, cost))
	if len(a.Windows) > 0 && v.first() {
		v.next.CompareAndSwap(0, now.UnixNano())
	}
	if now.Sub(v.told) < aboutInterval {
		return false
	}
	v.told = now
	return true
}

// forget drops the requests of viewers that have left. v.mu is held.
func (v *viewers) forget(now time.Time) {
	maps.DeleteFunc(v.asks, func(_ string, a viewerAsk) bool { return now.After(a.until) })
}

// viewInterval returns the time from one sample to the next, for samples of a cost.
func viewInterval(cost time.Duration) time.Duration {
	return min(max(minViewInterval, time.Duration(float64(cost)/viewShare)), maxViewInterval)
}

// current returns what viewers want now: some windows of each, in the order of the viewers' names, so that all ranks
// choose the same ones.
func (v *viewers) current() (asks []view.Ask) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forget(time.Now())
	left := maxViewWindows
	for _, id := range slices.Sorted(maps.Keys(v.asks)) {
		a := v.asks[id].Ask
		a.Windows = a.Windows[:min(left, len(a.Windows))]
		left -= len(a.Windows)
		if len(a.Windows) > 0 {
			asks = append(asks, a)
		}
	}
	return asks
}

// wanted reports whether it is time for a sample. Rank 0 calls it once a pass.
func (v *viewers) wanted() bool {
	next := v.next.Load()
	if next == 0 || v.sending.Load() || time.Now().UnixNano() < next {
		return false
	}
	if len(v.current()) == 0 {
		v.next.Store(0) // an ask that comes at this moment is repeated
		return false
	}
	return true
}

// Sample implements solver.Sampler.
func (v *viewers) Sample(ctx context.Context, at solver.Sample) error {
	return v.sample(ctx, at.Iterations, false)
}

// sample copies what viewers want of the field after the given number of sweeps, and sends it in the
// background.
func (v *viewers) sample(ctx context.Context, sweeps int, last bool) error {
	begin := time.Now()
	v.taken++
	asks := v.current()
	if !last && !v.sending.CompareAndSwap(false, true) {
		return nil // viewers go without this rank's rows, and so without this frame
	}
	v.mu.Lock()
	cost := v.cost
	v.mu.Unlock()
	var parts []view.Rows
	for _, a := range asks {
		for _, w := range a.Windows {
			r := view.Rows{Window: w, Viewer: a.Viewer, Sample: v.taken, Sweeps: sweeps,
				Bytes: v.field.Mesh.DType.Size(), Cost: cost.Seconds()}
			if err := v.copyRows(ctx, &r); err != nil {
				v.sending.Store(false)
				return fmt.Errorf("rows for a viewer: %w", err)
			}
			parts = append(parts, r)
		}
	}
	copied := time.Since(begin)
	send := func() {
		from := time.Now()
		for i := range parts {
			v.send(&parts[i])
		}
		v.charge(copied + time.Since(from))
		v.sending.Store(false)
	}
	if last {
		send()
	} else {
		v.sends.Go(send)
	}
	return nil
}

// charge keeps the cost of a sample, and lets the next one wait accordingly.
func (v *viewers) charge(cost time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cost = cost
	v.interval = max(v.interval, viewInterval(cost))
	if v.first() {
		v.next.Store(time.Now().Add(v.interval).UnixNano())
	}
}

// copyRows adds to r the rows that belong to this rank.
func (v *viewers) copyRows(ctx context.Context, r *view.Rows) error {
	rows, places := make([]int, r.Rows), make([]int, r.Cols)
	for i := range rows {
		rows[i] = r.Row(i)
	}
	for c := range places { // of the values in a row
		places[c] = r.Column(c) * r.Bytes
	}
	r.Values = make([]byte, 0, r.Rows*r.Cols*r.Bytes)
	return v.field.At(ctx, rows, func(i int, row []byte) {
		r.At = append(r.At, i)
		for _, at := range places {
			r.Values = append(r.Values, row[at:at+r.Bytes]...)
		}
	})
}

// send publishes rows, in several messages if need be. A message that is lost costs viewers a frame.
func (v *viewers) send(r *view.Rows) {
	row := r.Cols * r.Bytes
	room := min(int(min(v.Comm.Conn().MaxPayload(), viewMessage)), viewMessage)
	most := max(1, (room-view.MaxHead)/(row+8))
	for lo := 0; lo < len(r.At); lo += most {
		part, hi := *r, min(lo+most, len(r.At))
		part.At, part.Values = r.At[lo:hi], r.Values[lo*row:hi*row]
		if err := v.Comm.Conn().Publish(v.Comm.Subject(view.RowsName), part.Encode()); err != nil {
			return
		}
	}
}

// add takes norms for viewers, as the recorder hands them over. Rank 0 calls it.
func (v *viewers) add(norms []float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, norm := range norms {
		v.track.Add(v.Layout.Norms.Sweep(v.norms), norm)
		v.norms++
	}
}

// tell publishes what viewers know of the run but for its field.
func (v *viewers) tell() {
	v.mu.Lock()
	points := v.track.Points()
	v.mu.Unlock()
	goal := v.Goal
	if goal.Base == 0 && len(points) > 0 {
		goal.Base = float64(points[0].Norm)
	}
	a := view.About{Run: v.run, Scale: v.Config.Output.PictureScale, Points: points}
	a.Run.Tolerance = goal.Target()
	for i, m := range v.Comm.Members() {
		s := v.Stripes[i]
		a.Ranks = append(a.Ranks, view.Rank{Rank: i, Host: m.Host, Device: m.Device, Stripe: [2]int{s.Lo, s.Hi}})
	}
	data, err := json.Marshal(a)
	if err == nil && int64(len(data)) > v.Comm.Conn().MaxPayload() {
		a.Ranks = nil
		data, err = json.Marshal(a)
	}
	if err == nil {
		_ = v.Comm.Conn().Publish(v.Comm.Subject(view.AboutName), data) // a viewer asks again
	}
}

// finish gives viewers the field and the norms of the end. All ranks call it.
func (v *viewers) finish(ctx context.Context, result solver.Result) error {
	if v.sub == nil {
		return nil
	}
	v.sends.Wait()
	if len(v.current()) == 0 {
		return nil
	}
	if v.first() {
		v.tell()
	}
	return v.sample(ctx, result.Iterations, true)
}

// describeRun describes the run as its report will.
func (o *Outputs) describeRun() view.Run {
	about := o.Report
	about.Version = ""
	run := view.RunOf(about)
	run.Outlines = o.outlines
	run.Facts = slices.Concat(run.Facts, [][2]string{
		{"Ranks", fmt.Sprintf("%d, halo depth %d", o.id.Size, o.Layout.Depth)},
		{"Method", o.Config.Solver.Method},
		{"Ends", endOf(o.Config.Solver)},
	})
	return run
}

// endOf says in words when a run ends.
func endOf(s configs.Solver) string {
	text := fmt.Sprintf("after %d %ss", s.MaxIterations, s.Step())
	if s.RelativeTolerance > 0 {
		text = fmt.Sprintf("at a norm of %g of that of the data, or ", s.RelativeTolerance) + text
	}
	if s.Tolerance > 0 {
		text = fmt.Sprintf("at a norm of %g, or ", s.Tolerance) + text
	}
	return text
}
