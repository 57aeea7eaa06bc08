package checkpoint

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"jacobi/internal/net/roster"
	"jacobi/internal/observe/stats"
	"jacobi/solver"
)

// Pinner is an optional interface of solver.Rows that copy faster to prepared memory.
type Pinner interface {
	// Pin prepares memory for copies until unpin is called.
	Pin(memory []byte) (unpin func() error, err error)
}

// SaverOptions are the options of a Saver. They describe the same run and the same place on all ranks. Layout, Rows and
// Log are the rank's own.
type SaverOptions struct {
	Comm    *roster.Comm
	Store   Store
	Layout  solver.Layout
	Stripes []solver.Stripe // of all ranks
	Rows    solver.Rows
	Arrays  int // see Manifest
	// Aggregates returns that of the manifest, for the present state.
	Aggregates func() int
	Every      time.Duration // 0: no checkpoints by the clock
	Keep       int           // how many of the newest checkpoints to keep
	RunID      string
	Program    string
	Problem    Problem
	Norms      []float64      // of the sweeps before this run; on rank 0 only
	Base       float64        // as in Manifest
	Cadence    solver.Cadence // which sweeps have a norm
	// OnSaved, if not nil, is called when this rank has written a state, or failed to. Rank 0 has sealed it, too.
	OnSaved func(sweeps int, start time.Time, took time.Duration)
	Log     *zap.Logger
}

// Saver is a solver.Saver that writes checkpoints. Save copies the rank's rows, and a goroutine writes them. Rank 0's
// goroutine seals the checkpoint after all ranks have written and all norms are known. A checkpoint that fails is only
// a warning. The goroutine of the run calls Wanted, Busy, Save, Finish and Close.
type Saver struct {
	o          SaverOptions
	rows       []byte       // anonymous memory outside the Go heap
	unpin      func() error // called before rows is unmapped
	ctx        context.Context
	cancel     context.CancelFunc
	saved      chan struct{} // closed when the state in rows is saved, or there is none
	last       int           // sweeps of the newest state copied; 0 if there is none
	aggregates int           // Aggregates of that state
	copied     time.Time     // time of the newest copy, or of the start of the run

	mu        sync.Mutex
	norms     []float64
	normsDone bool          // no more norms will come
	normsNew  chan struct{} // holds a token after norms or normsDone has changed
	sealed    time.Time     // time of the newest seal
	serial    int
	stats     stats.Checkpoints // kept on rank 0
}

// NewSaver returns a Saver for a run. It removes unsealed checkpoints that earlier runs have left. The Saver works
// until ctx ends. The caller closes it.
func NewSaver(ctx context.Context, o SaverOptions) (*Saver, error) {
	s := &Saver{o: o, saved: make(chan struct{}), normsNew: make(chan struct{}, 1), copied: time.Now(), norms: o.Norms}
	close(s.saved)
	err := s.openPlace(ctx)
	if err != nil {
		return nil, fmt.Errorf("checkpoints in %s: %w", o.Store, err)
	}
	size := max(1, o.Arrays) * o.Layout.Stripe.Rows() * o.Layout.Mesh.RowBytes()
	s.rows, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("memory for checkpoints: %w", err)
	}
	s.unpin = func() error { return nil }
	if p, ok := o.Rows.(Pinner); ok {
		if unpin, err := p.Pin(s.rows); err != nil {
			o.Log.Warn("checkpoints will take longer", zap.Error(err))
		} else {
			s.unpin = unpin
		}
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s, nil
}

// clean sets the serial from the existing checkpoints and removes unsealed ones. It fails if the checkpoints are of
// another problem.
func (s *Saver) clean(ctx context.Context) error {
	found, _, err := List(ctx, s.o.Store, "")
	if err != nil {
		return err
	}
	if len(found) > 0 {
		s.serial = found[0].Serial
		if err := found[0].CheckProblem(s.o.Problem); err != nil {
			return err
		}
		if s.serial == maxSerial {
			return fmt.Errorf("the newest checkpoint has the serial %d, and none follows it: it was forged", maxSerial)
		}
	}
	return s.o.Store.RemoveUnsealed(ctx)
}

// probeFile is written by rank 0 and looked up by the others, which proves that they see the same place.
const probeFile = "probe"

// openPlace cleans the place and fails on all ranks unless all of them see the same one.
func (s *Saver) openPlace(ctx context.Context) error {
	var name []byte
	if s.o.Comm.Self().Rank == 0 {
		if err := s.clean(ctx); err != nil {
			return err
		}
		name = []byte("probe-" + rand.Text())
		if err := s.o.Store.Write(ctx, string(name), probeFile, int64(len(name)), writes(name)); err != nil {
			return err
		}
		defer func() { _ = s.o.Store.Remove(ctx, string(name)) }() // if this fails, the next run removes the probe
	}
	name, err := s.o.Comm.Broadcast(ctx, "checkpoints", name)
	if err != nil {
		return err
	}
	self := s.o.Comm.Self()
	var fault error
	if _, err := s.o.Store.Size(ctx, string(name), probeFile); err != nil {
		fault = fmt.Errorf("rank %d on %s does not see what rank 0 wrote there; all nodes have to share the place: %w",
			self.Rank, self.Host, err)
	}
	fault, err = firstFault(ctx, s.o.Comm, "checkpoints seen", fault)
	return cmp.Or(err, fault)
}

// Wanted implements solver.Saver. Only the clock of rank 0 counts.
func (s *Saver) Wanted() bool {
	return s.o.Every > 0 && s.o.Comm.Self().Rank == 0 && time.Since(s.copied) >= s.o.Every
}

// Busy implements solver.Saver.
func (s *Saver) Busy() bool {
	select {
	case <-s.saved:
		return false
	default:
		return true
	}
}

// Save implements solver.Saver.
func (s *Saver) Save(ctx context.Context, sweeps int) error {
	if s.Busy() {
		return fmt.Errorf("the state after sweep %d is not saved yet", s.last-1)
	}
	s.copied = time.Now()
	if err := s.o.Rows.CopyRows(ctx, s.o.Layout.Stripe, s.rows); err != nil {
		return err
	}
	s.last, s.aggregates = sweeps, s.o.Aggregates()
	saved := make(chan struct{})
	s.saved = saved
	go func() {
		defer close(saved)
		begin := time.Now()
		s.save(sweeps)
		if s.o.OnSaved != nil {
			s.o.OnSaved(sweeps, begin, time.Since(begin))
		}
	}()
	return nil
}

// AddNorms appends the next norms. Only rank 0 calls it.
func (s *Saver) AddNorms(norms []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.norms = append(s.norms, norms...)
	s.signal()
}

func (s *Saver) signal() {
	select {
	case s.normsNew <- struct{}{}:
	default:
	}
}

// Finish completes the newest checkpoint. If the run was interrupted or ended at max_iterations, a later run may resume
// from its end, so Finish also saves the final state, which the backend still has. All ranks call Finish. It fails only
// if the rows cannot be copied.
func (s *Saver) Finish(ctx context.Context, r solver.Result) error {
	s.mu.Lock()
	s.normsDone = true
	s.signal()
	s.mu.Unlock()
	mayResume := r.Reason == solver.Interrupted || r.Reason == solver.MaxIterations
	if !s.wait(ctx) || !mayResume || s.last == r.Iterations {
		return nil
	}
	if err := s.Save(ctx, r.Iterations); err != nil {
		return err
	}
	s.wait(ctx)
	return nil
}

// wait waits until the newest state is saved and reports whether that happened before ctx ended.
func (s *Saver) wait(ctx context.Context) bool {
	select {
	case <-s.saved:
	case <-ctx.Done():
	}
	if s.Busy() {
		s.o.Log.Warn(fmt.Sprintf("the checkpoint of sweep %d was not complete in time", s.last-1),
			zap.Error(context.Cause(ctx)))
		return false
	}
	return true
}

// Stats returns the current counts.
func (s *Saver) Stats() stats.Checkpoints {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// closeGrace bounds how long Close waits for a write that cannot be interrupted.
const closeGrace = 2 * time.Second

// Close cancels a checkpoint in progress and frees the buffer.
func (s *Saver) Close() error {
	s.cancel()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-s.saved:
		return errors.Join(s.unpin(), unix.Munmap(s.rows))
	case <-timer.C: // a write blocks and still uses the buffer, which is freed with the process
		return errors.New("checkpoint: a write is still under way")
	}
}

func (s *Saver) save(sweeps int) {
	begin := time.Now()
	self := s.o.Comm.Self()
	m := s.manifest(sweeps)
	mine := partReport{Set: setName(sweeps, s.o.RunID), Host: self.Host}
	p := m.Parts[self.Rank]
	err := s.o.Store.Write(s.ctx, mine.Set, p.File, p.Bytes, func(w io.Writer) (err error) {
		mine.Sum, err = m.writePart(w, p, s.rows)
		return err
	})
	if err != nil {
		mine.Error = err.Error()
	}
	parts, err := roster.GatherOn(s.ctx, s.o.Comm, "checkpoint part", mine)
	if self.Rank != 0 { // rank 0 receives every report, so sending fails only if the run does
		return
	}
	if err == nil {
		err = s.seal(m, parts)
	}
	if s.ctx.Err() != nil {
		return
	}
	if err == nil {
		s.countWritten(m, time.Since(begin))
		err = s.prune()
		if err != nil {
			s.o.Log.Warn("old checkpoints were not removed", zap.Error(err))
		}
		return
	}
	s.discard(sweeps, mine.Set, err)
}

// manifest returns the manifest of a checkpoint without the checksums.
func (s *Saver) manifest(sweeps int) *Manifest {
	m := &Manifest{Serial: s.serial + 1, Sweeps: sweeps, Problem: s.o.Problem, Mesh: s.o.Layout.Mesh,
		Magnitude: s.o.Layout.Magnitude, NormStride: s.o.Cadence.Stride, NormFirst: s.o.Cadence.First,
		Arrays: s.o.Arrays, Aggregates: s.aggregates, Base: s.o.Base,
		RunID: s.o.RunID, Program: s.o.Program, Created: time.Now().UTC().Truncate(time.Second)}
	m.Norms = m.normsPart()
	for r, stripe := range s.o.Stripes {
		m.Parts = append(m.Parts, Part{File: partFile(r), Lo: stripe.Lo, Hi: stripe.Hi,
			Bytes: m.rowsBytes(stripe.Lo, stripe.Hi)})
	}
	return m
}

// setName returns the name of a set: its sweeps and eight digits of a hash of the run id.
func setName(sweeps int, runID string) string {
	sum := sha256.Sum256([]byte(runID))
	return fmt.Sprintf("sweep-%012d-%s", sweeps, hex.EncodeToString(sum[:4]))
}

func (s *Saver) countWritten(m *Manifest, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial = m.Serial
	s.sealed = time.Now()
	s.stats.Written++
	s.stats.Sweeps, s.stats.Seconds, s.stats.Bytes = m.Sweeps, took.Seconds(), m.bytes()
}

// discard removes a checkpoint that failed and logs a warning, unless the run ended before the state.
func (s *Saver) discard(sweeps int, set string, err error) {
	if removed := s.o.Store.Remove(s.ctx, set); removed != nil {
		err = errors.Join(err, removed)
	}
	if errors.Is(err, errRunEnded) {
		return
	}
	s.mu.Lock()
	s.stats.Failed++
	last := "there is none yet"
	if s.stats.Written > 0 {
		last = fmt.Sprintf("the last good one is of sweep %d, %v old", s.stats.Sweeps-1,
			time.Since(s.sealed).Round(time.Second))
	}
	s.mu.Unlock()
	s.o.Log.Warn(fmt.Sprintf("the checkpoint of sweep %d failed, the run goes on; %s: %v", sweeps-1, last, err))
}

// prune removes all but the newest Keep checkpoints.
func (s *Saver) prune() error {
	found, _, err := List(s.ctx, s.o.Store, "")
	if err != nil {
		return err
	}
	for _, f := range found[min(len(found), s.o.Keep):] {
		err = errors.Join(err, s.o.Store.Remove(s.ctx, f.Set))
	}
	return err
}

// partReport is a rank's report to rank 0 about its part.
type partReport struct {
	Set   string `json:"set"`
	Host  string `json:"host"`
	Sum   string `json:"sum,omitempty"`
	Error string `json:"error,omitempty"`
}

// errRunEnded says that, by late norms, the run ended before the saved state, which is therefore useless.
var errRunEnded = errors.New("the run ended before")

// seal reads the reports of all ranks, writes the norms and seals the checkpoint. Only rank 0 calls it.
func (s *Saver) seal(m *Manifest, parts []partReport) error {
	var faults []error
	set := parts[0].Set
	for r, p := range parts {
		switch {
		case p.Error != "":
			faults = append(faults, fmt.Errorf("rank %d on %s: %s", r, p.Host, p.Error))
		case p.Set != set:
			faults = append(faults, fmt.Errorf("rank %d on %s wrote %s, want %s", r, p.Host, p.Set, set))
		}
		m.Parts[r].Sum = p.Sum
	}
	if len(faults) > 0 {
		return faults[0] // the others mostly have the same cause, such as one full disk
	}
	for r, p := range m.Parts {
		n, err := s.o.Store.Size(s.ctx, set, p.File)
		if err == nil && n != p.Bytes {
			err = fmt.Errorf("%d bytes, want %d", n, p.Bytes)
		}
		if err != nil {
			return fmt.Errorf("%s of rank %d, as rank 0 sees it: %w", p.File, r, err)
		}
	}
	norms, err := s.normsBefore(m.Sweeps)
	if err != nil {
		return err
	}
	payload := make([]byte, normBytes*len(norms))
	solver.Float64.Encode(payload, norms)
	err = s.o.Store.Write(s.ctx, set, m.Norms.File, m.Norms.Bytes, func(w io.Writer) (err error) {
		m.Norms.Sum, err = m.writePart(w, m.Norms, payload)
		return err
	})
	if err != nil {
		return err
	}
	data, err := m.Encode()
	if err != nil {
		return err
	}
	return s.o.Store.Seal(s.ctx, set, data)
}

// normsBefore waits until the norms of the first sweeps are known and returns them.
func (s *Saver) normsBefore(sweeps int) ([]float64, error) {
	n := s.o.Cadence.In(sweeps)
	for {
		s.mu.Lock()
		norms, done := s.norms, s.normsDone
		s.mu.Unlock()
		switch {
		case len(norms) >= n:
			return norms[:n], nil
		case done:
			return nil, errRunEnded
		}
		select {
		case <-s.normsNew:
		case <-s.ctx.Done():
			return nil, context.Cause(s.ctx)
		}
	}
}
