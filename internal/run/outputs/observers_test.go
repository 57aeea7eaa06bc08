package outputs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	logged "go.uber.org/zap/zaptest/observer"

	"jacobi/configs"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/view"
	"jacobi/solver"
)

// plane is a field with the value ix + 100 iy at a point.
type plane struct{ mesh solver.Mesh }

func (p plane) Row(iy int, dst []byte) error {
	for ix := range p.mesh.NX {
		binary.LittleEndian.PutUint64(dst[8*ix:], math.Float64bits(float64(ix+100*iy)))
	}
	return nil
}

func (p plane) CopyRows(_ context.Context, s solver.Stripe, dst []byte) error {
	for iy := s.Lo; iy < s.Hi; iy++ {
		_ = p.Row(iy, dst[(iy-s.Lo)*p.mesh.RowBytes():])
	}
	return nil
}

// sampled are the outputs of a rank alone whose field is a plane.
type sampled struct {
	*Outputs
	held *output.Held
	logs *logged.ObservedLogs
}

func newSampled(t *testing.T, dir string, set ...string) *sampled {
	t.Helper()
	o := smallOutputs(t, append([]string{"grid.width=32.5", "problem.top=1", "output.dir=" + dir}, set...)...)
	held, _, err := output.Hold(o.Config.Output, "test")
	must(t, err)
	m := o.Layout.Mesh
	field := plane{m}
	o.edges = edges{}
	for _, iy := range []int{0, m.NY - 1} {
		o.edges[iy] = make([]byte, m.RowBytes())
		_ = field.Row(iy, o.edges[iy])
	}
	core, logs := logged.New(zap.WarnLevel)
	o.place, o.Field, o.Log = held, field, zap.New(core)
	t.Cleanup(func() { o.Abort(); _ = held.Close() })
	return &sampled{o, held, logs}
}

// run has the observers sample the field after the given sweeps, and finish after the last of them. It returns the
// warnings.
func (s *sampled) run(t *testing.T, result solver.Result, sweeps ...int) (warnings []string) {
	t.Helper()
	must(t, s.addObservers())
	for _, n := range sweeps {
		for _, l := range s.observers {
			must(t, l.Sample(t.Context(), solver.Sample{Iterations: n}))
		}
	}
	must(t, s.Finish(t.Context(), result))
	for _, entry := range s.logs.All() {
		warnings = append(warnings, entry.Message)
	}
	return warnings
}

// full is a place without room, and one whose file of probes cannot be created at first.
type full struct {
	output.Place
	probes error
}

func (*full) Create(string, int64) (output.File, error) { return nil, syscall.ENOSPC }

func (f *full) GrowProbes(before int) (output.File, int64, error) {
	if err := f.probes; err != nil {
		f.probes = nil
		return nil, 0, err
	}
	return f.Place.GrowProbes(before)
}

// Each sample, and the field of the end, is a whole file. A run that goes on removes what lies beyond its start, and
// the field of the end before. Files without room are a single warning, and the run goes on.
func TestSeriesOfARankAlone(t *testing.T) {
	dir, keys := t.TempDir(), []string{"output.field=field.npy", "output.every=10"}
	s := newSampled(t, dir, keys...)
	warnings := s.run(t, solver.Result{Iterations: 25}, 10, 20)
	if r := s.series.stats; r.Written != 3 || r.Sweeps != 25 || r.Failed != 0 || warnings != nil {
		t.Errorf("report %+v, warnings %q", r, warnings)
	}
	data, err := os.ReadFile(filepath.Join(dir, "field-000000025.npy"))
	var rows []byte
	for iy := range 98 {
		row := make([]byte, 8*66)
		_ = plane{s.Layout.Mesh}.Row(iy, row)
		rows = append(rows, row...)
	}
	if err != nil || !bytes.HasSuffix(data, rows) {
		t.Errorf("%d bytes that do not end with the field (%v)", len(data), err)
	}
	must(t, s.held.Close())
	s = newSampled(t, dir, keys...)
	s.Start = 25
	warnings = s.run(t, solver.Result{Iterations: 30}, 30)
	if r := s.series.stats; r.Written != 1 || r.Sweeps != 30 || warnings != nil {
		t.Errorf("after a restart: report %+v, warnings %q", r, warnings)
	}
	files, err := filepath.Glob(filepath.Join(dir, "field-*.npy"))
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if want := []string{"field-000000010.npy", "field-000000020.npy", "field-000000030.npy"}; err != nil ||
		!slices.Equal(files, want) {
		t.Errorf("files %q (%v), want %q", files, err, want)
	}
	must(t, s.held.Close())
	s = newSampled(t, dir, keys...)
	s.Start, s.place = 30, &full{Place: s.held}
	warnings = s.run(t, solver.Result{Iterations: 50}, 40, 50)
	want := []string{"field-000000040.npy is not written, the run goes on: " + s.series.stats.Error}
	if r := s.series.stats; r.Written != 0 || r.Failed != 2 || r.Error == "" || !slices.Equal(warnings, want) {
		t.Errorf("without room: report %+v, warnings %q", r, warnings)
	}
}

// The file has the values of points in the middle, on the boundary and along a line, also at the end. Values that
// cannot be written are a warning, and the next ones are written.
func TestProbesOfARankAlone(t *testing.T) {
	dir := t.TempDir()
	s := newSampled(t, dir, "output.probes=a=[3,5]; corner=[65,97]; cut=[10,0]..[10,2]/3", "output.probes_every=10")
	s.place = &full{s.held, errors.New("disk full")}
	warnings := s.run(t, solver.Result{Iterations: 25}, 10, 20)
	got, err := os.ReadFile(filepath.Join(dir, configs.ProbesFile))
	want := output.ProbesHeader
	for _, sweeps := range []string{"20", "25"} {
		want += sweeps + ",a,3,5,1.5,2.5,503\n" + sweeps + ",corner,65,97,32.5,48.5,9765\n" +
			sweeps + ",cut,10,0,5,0,10\n" + sweeps + ",cut,10,1,5,0.5,110\n" + sweeps + ",cut,10,2,5,1,210\n"
	}
	if err != nil || string(got) != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
	if r := *s.probes.stats; r != (output.ProbesReport{Every: 10, Points: 5, Samples: 2}) {
		t.Errorf("report %+v", r)
	}
	if want := []string{"probes.csv: values are not written, the run goes on: disk full"}; !slices.Equal(warnings,
		want) {
		t.Errorf("warnings %q, want %q", warnings, want)
	}
}

// taking is an observer that does one thing beside the sweeps.
type taking func(ctx context.Context) error

func (f taking) take(context.Context, solver.Sample) (func(context.Context) error, error) {
	return f, nil
}
func (taking) finish() error { return nil }

// The error of what goes on beside the sweeps is that of the next sample, or of the end, once.
func TestErrorBesideTheSweeps(t *testing.T) {
	want := errors.New("rank 1 is gone")
	l := newLoop(t.Context(), "task", time.Minute, taking(func(context.Context) error { return want }))
	if err := l.Finish(t.Context(), solver.Result{Iterations: 1}); err != want {
		t.Errorf("of the field of the end: %v, want %v", err, want)
	}
	if err := l.Sample(t.Context(), solver.Sample{}); err != nil {
		t.Errorf("the first sample: %v", err)
	}
	if err := l.Sample(t.Context(), solver.Sample{}); err != want {
		t.Errorf("the next sample: %v, want %v", err, want)
	}
	if err := l.Finish(t.Context(), solver.Result{}); err != nil {
		t.Errorf("once more: %v", err)
	}
}

// A wait that ends early names the observer. Close ends what goes on, and returns when it has ended.
func TestWaitForAnObserverEnds(t *testing.T) {
	ended := false
	l := newLoop(t.Context(), "series", time.Minute, taking(func(ctx context.Context) error {
		<-ctx.Done()
		ended = true
		return ctx.Err()
	}))
	must(t, l.Sample(t.Context(), solver.Sample{}))
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("rank 1 is gone")
	cancel(cause)
	if err := l.Sample(ctx, solver.Sample{}); !errors.Is(err, cause) || err.Error() != "series: rank 1 is gone" {
		t.Errorf("%v, want series: %v", err, cause)
	}
	if err := l.Close(); err != nil || !ended {
		t.Errorf("%v, ended %t; want it to have ended", err, ended)
	}
}

// Rank 0 asks for samples while a viewer wants some, no more often than their cost allows.
func TestSamplesForViewersAreBounded(t *testing.T) {
	o := smallOutputs(t)
	v, err := o.openViewers()
	must(t, err)
	now := time.Now()
	w := view.Window{X1: 66, Y1: 98, Cols: 66, Rows: 98}
	if v.wanted() || v.keep(view.Ask{Viewer: "a"}, now) != true || v.wanted() {
		t.Error("a sample is wanted although nobody wants a window")
	}
	if v.keep(view.Ask{Viewer: "a", Windows: []view.Window{w}}, now); !v.wanted() {
		t.Error("no sample is wanted")
	}
	const cost = 10 * time.Millisecond
	v.charge(cost)
	if v.wanted() {
		t.Error("a sample is wanted right after another one")
	}
	share := func() float64 { return cost.Seconds() / time.Until(time.Unix(0, v.next.Load())).Seconds() }
	if s := share(); s > viewShare*1.1 {
		t.Errorf("samples take %g of the time, want at most %g", s, viewShare)
	}
	v.keep(view.Ask{Viewer: "a", Windows: []view.Window{w}, Cost: 0.05}, now) // another rank is slower
	v.charge(cost)
	if s := share(); s > viewShare*1.1/5 {
		t.Errorf("samples take %g of the time of another rank", 5*s)
	}
	v.next.Store(now.UnixNano())
	v.asks["a"] = viewerAsk{v.asks["a"].Ask, now.Add(-1)} // it has left
	if v.wanted() || v.next.Load() != 0 {
		t.Error("a sample is wanted for a viewer that has left")
	}
	for cost, want := range map[time.Duration]time.Duration{0: minViewInterval, time.Millisecond: minViewInterval,
		10 * time.Millisecond: 1250 * time.Millisecond, time.Hour: maxViewInterval} {
		if got := viewInterval(cost); got != want {
			t.Errorf("samples of %v are %v apart, want %v", cost, got, want)
		}
	}
	for i := range 2 * maxViewers {
		v.keep(view.Ask{Viewer: string(rune('a' + i)), Windows: []view.Window{w, w}}, now)
	}
	n := 0
	for _, a := range v.current() {
		n += len(a.Windows)
	}
	if len(v.asks) != maxViewers || n != maxViewWindows {
		t.Errorf("%d viewers with %d windows, want %d and %d", len(v.asks), n, maxViewers, maxViewWindows)
	}
}
