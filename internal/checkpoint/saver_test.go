package checkpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/configs"
	"jacobi/internal/roster"
	"jacobi/internal/roster/rostertest"
	"jacobi/solver"
)

var mesh = solver.Mesh{NX: 9, NY: 100, DType: solver.Float32}

var fields = map[string]string{"grid.nx": "9"}

// value is what the field holds after some sweeps.
func value(sweeps, y, x int) uint32 { return uint32(sweeps*1_000_000 + y*100 + x) }

// rowsAfter is a field after some sweeps.
type rowsAfter struct{ sweeps int }

func (r *rowsAfter) CopyRows(_ context.Context, s solver.Stripe, dst []byte) error {
	for y := s.Lo; y < s.Hi; y++ {
		for x := range mesh.NX {
			binary.LittleEndian.PutUint32(dst[4*((y-s.Lo)*mesh.NX+x):], value(r.sweeps, y, x))
		}
	}
	return nil
}

// boundary is the initial field: nobody may ask it for the interior.
type boundary struct{}

func (boundary) Row(iy int, dst []byte) error {
	if iy != 0 && iy != mesh.NY-1 {
		return fmt.Errorf("row %d of the initial field was asked for", iy)
	}
	return (&rowsAfter{}).CopyRows(context.Background(), solver.Stripe{Lo: iy, Hi: iy + 1}, dst)
}

// crew is the ranks of a run in this process.
type crew struct {
	t       *testing.T
	teams   []*roster.Team
	layouts []solver.Layout
	stripes []solver.Stripe
	logs    *observer.ObservedLogs // of all ranks
	bucket  *nats.Conn             // to the server with buckets; nil where none is used
	log     *zap.Logger
}

func newCrew(t *testing.T, ranks, depth int, periodic bool) *crew {
	t.Helper()
	c := &crew{t: t, teams: make([]*roster.Team, ranks)}
	core, logs := observer.New(zapcore.WarnLevel)
	c.log, c.logs = zap.New(core), logs
	var err error
	if c.stripes, err = solver.Partition(mesh.NY, ranks, depth); err != nil {
		t.Fatal(err)
	}
	srv := rostertest.Start(t, 0)
	m := mesh
	m.Periodic = periodic
	for r := range ranks {
		c.layouts = append(c.layouts, solver.Layout{Mesh: m, Stripe: c.stripes[r], Depth: depth,
			Neighbour: [2]bool{r > 0 || periodic, r < ranks-1 || periodic}})
	}
	c.each(func(r int) (err error) {
		id := roster.Identity{RunID: strings.ReplaceAll(t.Name(), "/", "-"), Rank: r, Size: ranks, LocalRank: r,
			LocalSize: ranks}
		c.teams[r], err = roster.Join(t.Context(), srv.Dial(), roster.Member{Identity: id, Host: "h"}, limit)
		return err
	})
	t.Cleanup(func() {
		for _, team := range c.teams {
			team.Close()
		}
	})
	return c
}

// each runs f for all ranks at once.
func (c *crew) each(f func(rank int) error) {
	c.t.Helper()
	if err := c.try(f); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crew) try(f func(rank int) error) error {
	errs := make([]error, len(c.teams))
	var wg sync.WaitGroup
	for r := range c.teams {
		wg.Go(func() { errs[r] = f(r) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (c *crew) savers(store Store, keep int) []*Saver {
	c.t.Helper()
	savers := make([]*Saver, len(c.teams))
	c.each(func(r int) (err error) {
		savers[r], err = NewSaver(c.t.Context(), SaverOptions{Team: c.teams[r], Store: store, Layout: c.layouts[r],
			Stripes: c.stripes,
			Rows:    &rowsAfter{}, Keep: keep, RunID: c.t.Name(), Program: "test", Fields: fields, Log: c.log})
		return err
	})
	c.t.Cleanup(func() {
		for _, s := range savers {
			if err := s.Close(); err != nil {
				c.t.Error(err)
			}
		}
	})
	return savers
}

// save lets all ranks save the states after the given sweeps, one after the other.
func (c *crew) save(savers []*Saver, sweeps ...int) {
	c.t.Helper()
	for _, n := range sweeps {
		savers[0].AddNorms(normsTo(n)[len(savers[0].norms):])
		c.each(func(r int) error {
			savers[r].o.Rows.(*rowsAfter).sweeps = n
			if err := savers[r].Save(c.t.Context(), n); err != nil {
				return err
			}
			if !savers[r].wait(c.t.Context()) {
				return errors.New("not complete")
			}
			return nil
		})
	}
}

func normsTo(sweeps int) []float64 {
	norms := make([]float64, sweeps)
	for i := range norms {
		norms[i] = 1 / float64(i+1)
	}
	return norms
}

// resume lets all ranks go on, and returns rank 0's state once all were found right.
func (c *crew) resume(place string, s configs.Solver) (*State, error) {
	c.t.Helper()
	states := make([]*State, len(c.teams))
	err := c.try(func(r int) (err error) {
		states[r], err = Resume(c.t.Context(), ResumeOptions{Team: c.teams[r], Place: place, Conn: c.bucket,
			Fields: fields, Solver: s, Layout: c.layouts[r], Boundary: boundary{}, Log: c.log})
		if err != nil {
			_ = c.teams[r].Abort(err) // as a rank does, so that the others end
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for r, state := range states {
		c.check(r, state)
		if err := state.Field.Close(); err != nil {
			c.t.Error(err)
		}
		if r > 0 && (state.Set != states[0].Set || !slices.Equal(state.Start.Norms, states[0].Start.Norms)) {
			c.t.Errorf("rank %d goes on from %+v, rank 0 from %+v", r, state, states[0])
		}
	}
	return states[0], nil
}

// check compares all rows that a rank holds.
func (c *crew) check(r int, state *State) {
	c.t.Helper()
	got, want := make([]byte, mesh.RowBytes()), make([]byte, mesh.RowBytes())
	held := c.layouts[r].Held()
	for y := held.Lo; y < held.Hi; y++ {
		row, ok := c.layouts[r].Mesh.Canonical(y)
		if !ok {
			c.t.Fatalf("row %d", y)
		}
		sweeps := state.Start.Sweeps
		if row == 0 || row == mesh.NY-1 {
			sweeps = 0
		}
		_ = (&rowsAfter{sweeps}).CopyRows(c.t.Context(), solver.Stripe{Lo: row, Hi: row + 1}, want) // never fails
		if err := state.Field.Row(row, got); err != nil || !slices.Equal(got, want) {
			c.t.Fatalf("rank %d, row %d: %v, %v; want %v", r, row, err, got, want)
		}
	}
}

// limit bounds what takes far less.
const limit = 60_000_000_000

var endless = configs.Solver{MaxIterations: 1 << 30}

// What some ranks save, any other number of ranks goes on from, with the norms of all sweeps before.
func TestResumeWithOtherRanks(t *testing.T) {
	for _, periodic := range []bool{false, true} {
		dir := t.TempDir()
		c := newCrew(t, 4, 2, periodic)
		c.save(c.savers(NewDir(dir), 2), 10, 20, 30)
		sets, err := NewDir(dir).Sets(t.Context())
		if err != nil || len(sets) != 2 {
			t.Fatalf("%d sets, %v; want the 2 newest", len(sets), err)
		}
		for _, ranks := range []int{1, 3, 4, 6} {
			state, err := newCrew(t, ranks, 5, periodic).resume(dir, endless)
			if err != nil {
				t.Fatal(err)
			}
			want := normsTo(30)
			if state.Start.Sweeps != 30 || !slices.Equal(state.Norms, want) || !slices.Equal(state.Start.Norms, want) {
				t.Errorf("periodic %v, %d ranks: %+v", periodic, ranks, state)
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("%v, %v: more is left than the sets", entries, err)
		}
	}
}

// pinner is Rows that want to know where they are copied to.
type pinner struct {
	rowsAfter
	err    error
	pinned []byte
	unpins int
}

func (p *pinner) Pin(memory []byte) (func() error, error) {
	p.pinned = memory
	return func() error { p.unpins++; return nil }, p.err
}

// Rows learn of the memory that they are copied to, and that it goes; a checkpoint needs neither.
func TestPin(t *testing.T) {
	for _, fault := range []error{nil, errors.New("no pages to lock")} {
		c := newCrew(t, 1, 1, false)
		rows := &pinner{err: fault}
		s, err := NewSaver(t.Context(), SaverOptions{Team: c.teams[0], Store: NewDir(t.TempDir()), Layout: c.layouts[0],
			Stripes: c.stripes,
			Rows:    rows, Keep: 1, RunID: t.Name(), Program: "test", Fields: fields, Log: c.log})
		if err != nil {
			t.Fatal(err)
		}
		s.AddNorms(normsTo(10))
		if err := s.Save(t.Context(), 10); err != nil || !s.wait(t.Context()) || s.Stats().Written != 1 {
			t.Fatalf("%v: %v, %+v", fault, err, s.Stats())
		}
		if len(rows.pinned) != len(s.rows) || &rows.pinned[0] != &s.rows[0] {
			t.Errorf("%v: pinned %d bytes, want the %d that rows are copied to", fault, len(rows.pinned), len(s.rows))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		unpins, warnings := 1, 0
		if fault != nil {
			unpins, warnings = 0, 1
		}
		if rows.unpins != unpins || c.logs.FilterMessage("checkpoints will take longer").Len() != warnings {
			t.Errorf("%v: unpinned %d times, want %d; logged %v", fault, rows.unpins, unpins, c.logs.All())
		}
	}
}

// A directory of one checkpoint can be named, also when it is not the newest.
func TestResumeFromOneSet(t *testing.T) {
	dir := t.TempDir()
	c := newCrew(t, 2, 1, false)
	c.save(c.savers(NewDir(dir), 5), 10, 20)
	state, err := newCrew(t, 3, 1, false).resume(filepath.Join(dir, setName(10, t.Name())), endless)
	if err != nil || state.Start.Sweeps != 10 {
		t.Errorf("%+v, %v", state, err)
	}
}

// Whatever file is damaged or missing, that is named and the checkpoint before is used; when none is left, the error
// names all.
func TestBrokenCheckpointIsNamedAndPassedOver(t *testing.T) {
	flip := func(path string) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b[len(b)*2/3] ^= 4
		return os.WriteFile(path, b, 0o666)
	}
	cut := func(path string) error { return os.Truncate(path, 100) }
	pipe := func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }
	for name, c := range map[string]struct {
		file   string
		damage func(string) error
		want   string
	}{
		"byte":         {"part-00001", flip, "rank 1 on h: part-00001 is broken: checksum "},
		"cut":          {"part-00003", cut, "rank 0 on h: part-00003 is broken: 100 bytes, want "},
		"gone":         {"part-00002", os.Remove, "rank 1 on h: part-00002: open "},
		"norms":        {"norms", flip, "norms is broken: checksum "},
		"manifest":     {"manifest.json", flip, "manifest"},
		"manifest_cut": {"manifest.json", cut, "manifest: unexpected EOF"},

		"part_pipe":     {"part-00003", pipe, "rank 0 on h: part-00003: open "},
		"norms_pipe":    {"norms", pipe, "norms: open "},
		"manifest_pipe": {"manifest.json", pipe, "open "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := newCrew(t, 4, 2, false)
			first.save(first.savers(NewDir(dir), 2), 10, 20)
			newest := setName(20, t.Name())
			if err := c.damage(filepath.Join(dir, newest, c.file)); err != nil {
				t.Fatal(err)
			}
			second := newCrew(t, 3, 2, false)
			state, err := second.resume(dir, endless)
			if err != nil || state.Start.Sweeps != 10 {
				t.Fatalf("%+v, %v; want the checkpoint after 10 sweeps", state, err)
			}
			logs := second.logs.All()
			if want := "a checkpoint cannot be used: " + newest + ": " + c.want; len(logs) != 1 ||
				!strings.HasPrefix(logs[0].Message, want) {
				t.Errorf("logged %v, want %s", logs, want)
			}
			if err := os.RemoveAll(filepath.Join(dir, setName(10, t.Name()))); err != nil {
				t.Fatal(err)
			}
			_, err = newCrew(t, 3, 2, false).resume(dir, endless)
			if want := "go on from " + dir + ": no checkpoint is in order: " + newest + ": " + c.want; err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

func TestResumeRefuses(t *testing.T) {
	dir := t.TempDir()
	c := newCrew(t, 2, 1, false)
	c.save(c.savers(NewDir(dir), 2), 10)
	for _, k := range []struct {
		place  string
		solver configs.Solver
		want   string
	}{
		{t.TempDir(), endless, "there is no checkpoint"},
		{dir, configs.Solver{MaxIterations: 9}, "solver.max_iterations 9: the checkpoint has 10 sweeps behind it"},
		{dir, configs.Solver{MaxIterations: 99, Tolerance: 0.2},
			"solver.tolerance 0.2: the run would have ended (converged) after 6 sweeps, " +
				"and the checkpoint has 10 behind it"},
	} {
		_, err := newCrew(t, 2, 1, false).resume(k.place, k.solver)
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%v, want %s", err, k.want)
		}
		if err := CheckResume(t.Context(), k.place, fields, k.solver); err == nil || err.Error() != k.want {
			t.Errorf("launcher: %v, want %s", err, k.want)
		}
	}
	// norms fall to 1/10 with sweep 9: the run may end with sweep 10, after the checkpoint
	if _, err := newCrew(t, 2, 1, false).resume(dir, configs.Solver{MaxIterations: 10, Tolerance: 0.1}); err != nil {
		t.Error(err)
	}
	other := map[string]string{"grid.nx": "10"}
	const want = `grid.nx is "10" here and "9" in the checkpoint, which is of another problem`
	if err := CheckResume(t.Context(), dir, other, endless); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := CheckDir(t.Context(), dir, other, 2, mesh, true); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A state beyond the end that late norms bring is dropped; one that waits for its norms is sealed when they come.
func TestStateIsSealedOnceItsNormsAreKnown(t *testing.T) {
	for _, known := range []int{10, 9} {
		dir := t.TempDir()
		c := newCrew(t, 3, 1, false)
		savers := c.savers(NewDir(dir), 2)
		c.each(func(r int) error { return savers[r].Save(t.Context(), 10) })
		if sets, err := NewDir(dir).Sets(t.Context()); err != nil || len(sets) != 0 {
			t.Fatalf("sealed without norms: %v, %v", sets, err)
		}
		savers[0].AddNorms(normsTo(known))
		c.each(func(r int) error {
			return savers[r].Finish(t.Context(), solver.Result{Sweeps: known, Reason: solver.Converged})
		})
		sets, err := NewDir(dir).Sets(t.Context())
		if err != nil || len(sets) != known-9 {
			t.Errorf("%d norms: %v, %v", known, sets, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != known-9 {
			t.Errorf("%d norms: %v is left, %v", known, entries, err)
		}
		if s := savers[0].Stats(); s.Written != known-9 || s.Failed != 0 {
			t.Errorf("%d norms: %+v", known, s)
		}
	}
}

// A run that is interrupted leaves a checkpoint of its last sweep.
func TestInterruptedRunIsSaved(t *testing.T) {
	dir := t.TempDir()
	c := newCrew(t, 3, 1, false)
	savers := c.savers(NewDir(dir), 2)
	c.save(savers, 10)
	savers[0].AddNorms(normsTo(13)[10:])
	c.each(func(r int) error {
		savers[r].o.Rows.(*rowsAfter).sweeps = 13
		return savers[r].Finish(t.Context(), solver.Result{Sweeps: 13, Reason: solver.Interrupted})
	})
	state, err := newCrew(t, 2, 1, false).resume(dir, endless)
	if err != nil || state.Start.Sweeps != 13 {
		t.Errorf("%+v, %v", state, err)
	}
}

// A directory that not all nodes share is refused at the start; a part that rank 0 cannot see later is no part.
func TestPlaceHasToBeShared(t *testing.T) {
	c := newCrew(t, 3, 1, false)
	dir := t.TempDir()
	open := func(r int, store Store) (*Saver, error) {
		return NewSaver(t.Context(), SaverOptions{Team: c.teams[r], Store: store, Layout: c.layouts[r],
			Stripes: c.stripes, Rows: &rowsAfter{}, Keep: 1, RunID: "x", Fields: fields, Log: c.log})
	}
	err := c.try(func(r int) error {
		store := NewDir(dir)
		if r == 1 {
			store = NewDir(filepath.Join(dir, "elsewhere"))
		}
		s, err := open(r, store)
		if s != nil {
			return errors.Join(err, s.Close())
		}
		return err
	})
	want := "checkpoints in " + dir + ": rank 1 on h does not see what rank 0 wrote there; all nodes have to share " +
		"the place: "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	savers := c.savers(NewDir(dir), 1)
	savers[1].o.Store = NewDir(filepath.Join(dir, "elsewhere"))
	c.save(savers, 10)
	const missed = "the checkpoint of sweep 9 failed, the run goes on; there is none yet: part-00001 of rank 1, as " +
		"rank 0 sees it: "
	if logs := c.logs.All(); len(logs) != 1 || !strings.HasPrefix(logs[0].Message, missed) {
		t.Errorf("logged %v, want %s", logs, missed)
	}
}

// A full disk costs the checkpoint, not the run; the warning says how old the last good one is.
func TestFullDiskCostsACheckpoint(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=48k"); err != nil {
		t.Skipf("NOT RUN, a tmpfs cannot be mounted: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	c := newCrew(t, 2, 1, false)
	savers := c.savers(NewDir(dir), 1)
	c.save(savers, 10)
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 28<<10), 0o666); err != nil {
		t.Fatal(err)
	}
	c.save(savers, 20)
	if s := savers[0].Stats(); s.Written != 1 || s.Failed != 1 || s.Sweeps != 10 {
		t.Errorf("%+v, want one written and one failed", s)
	}
	logs := c.logs.All()
	const want = "the checkpoint of sweep 19 failed, the run goes on; the last good one is of sweep 9, 0s old: rank "
	if len(logs) != 1 || !strings.HasPrefix(logs[0].Message, want) ||
		!strings.HasSuffix(logs[0].Message, "no space left on device") {
		t.Errorf("logged %v, want %s", logs, want)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v: the failed one was not removed", entries, err)
	}
	if err := CheckDir(t.Context(), dir, fields, 9, mesh, true); err == nil ||
		!strings.Contains(err.Error(), "are needed for checkpoint.keep 9 and one under way") {
		t.Errorf("the launcher would start: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c.save(savers, 30)
	if s := savers[0].Stats(); s.Written != 2 || s.Sweeps != 30 {
		t.Errorf("%+v, want two written", s)
	}
}

// What a killed run left is removed, and a set that another start with the same run id wrote is replaced.
func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".sweep-1-x.unsealed", ".sweep-2-x.removed"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "sub"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		c := newCrew(t, 2, 1, false)
		c.save(c.savers(NewDir(dir), 2), 10)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != setName(10, t.Name()) {
		t.Errorf("%v, %v", entries, err)
	}
	found, faults, err := List(t.Context(), NewDir(dir), "")
	if err != nil || len(faults) > 0 || found[0].Serial != 2 {
		t.Errorf("%+v, %v, %v; want serial 2", found, faults, err)
	}
}

// Another user of a shared directory may have put something else in the place of a file that is to be written.
func TestWriteToNothingButARegularFile(t *testing.T) {
	dir := t.TempDir()
	unsealed := NewDir(dir).unsealed("set")
	if err := os.Mkdir(unsealed, 0o700); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(dir, "precious")
	err := errors.Join(syscall.Mkfifo(filepath.Join(unsealed, "part-00000"), 0o600),
		os.WriteFile(precious, []byte("precious"), 0o600), os.Symlink(precious, filepath.Join(unsealed, "part-00001")))
	if err != nil {
		t.Fatal(err)
	}
	for file, kind := range map[string]string{"part-00000": "a named pipe", "part-00001": "a symbolic link"} {
		err := NewDir(dir).Write(t.Context(), "set", file, 1, func(io.Writer) error { t.Error("written"); return nil })
		want := "open " + filepath.Join(unsealed, file) + ": " + kind + "; a regular file is wanted"
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if b, err := os.ReadFile(precious); err != nil || string(b) != "precious" {
		t.Errorf("behind the link: %q, %v", b, err)
	}
}
