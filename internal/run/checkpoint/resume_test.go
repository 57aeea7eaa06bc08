package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// A run can resume from the directory of one checkpoint, even if that is not the newest.
func TestResumeFromOneSet(t *testing.T) {
	dir := t.TempDir()
	c := newCrew(t, 2, 1, false)
	c.save(c.savers(NewDir(dir), 5), 10, 20)
	state, err := newCrew(t, 3, 1, false).resume(filepath.Join(dir, setName(10, t.Name())), endless)
	if err != nil || state.Start.Iterations != 10 {
		t.Errorf("%+v, %v", state, err)
	}
}

// If a file is damaged or missing, the log names it and the run resumes from the checkpoint before. If no checkpoint is
// left, the error names all faults.
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
			must(t, c.damage(filepath.Join(dir, newest, c.file)))
			second := newCrew(t, 3, 2, false)
			state, err := second.resume(dir, endless)
			if err != nil || state.Start.Iterations != 10 {
				t.Fatalf("%+v, %v; want the checkpoint after 10 sweeps", state, err)
			}
			logs := second.logs.All()
			if want := "a checkpoint cannot be used: " + newest + ": " + c.want; len(logs) != 1 ||
				!strings.HasPrefix(logs[0].Message, want) {
				t.Errorf("logged %v, want %s", logs, want)
			}
			must(t, os.RemoveAll(filepath.Join(dir, setName(10, t.Name()))))
			_, err = newCrew(t, 3, 2, false).resume(dir, endless)
			if want := "go on from " + dir + ": no checkpoint is intact: " + newest + ": " + c.want; err == nil ||
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
		{dir, configs.Solver{MaxIterations: 9}, "solver.max_iterations 9: the checkpoint already has 10 sweeps"},
		{dir, configs.Solver{MaxIterations: 99, Tolerance: 0.2},
			"solver.tolerance 0.2, solver.relative_tolerance 0: the run would have ended (converged) after 6 sweeps, " +
				"and the checkpoint already has 10"},
	} {
		_, err := newCrew(t, 2, 1, false).resume(k.place, k.solver)
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%v, want %s", err, k.want)
		}
		if err := CheckResume(t.Context(), k.place, same, k.solver); err == nil || err.Error() != k.want {
			t.Errorf("launcher: %v, want %s", err, k.want)
		}
	}
	// The norm of sweep 9 is 1/10, so the run ends after sweep 10 at the earliest: not before the checkpoint.
	if _, err := newCrew(t, 2, 1, false).resume(dir, configs.Solver{MaxIterations: 10, Tolerance: 0.1}); err != nil {
		t.Error(err)
	}
	other := Problem{Fields: map[string]string{"grid.nx": "10"}}
	const want = `the checkpoint sets grid.nx to "9", this run to "10"`
	if err := CheckResume(t.Context(), dir, other, endless); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := CheckDir(t.Context(), dir, other, 2, int64(98*mesh.RowBytes()), true); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// pinner is Rows with Pin.
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

// A Saver pins its buffer and unpins it when it is closed. Checkpoints work even if Pin fails.
func TestPin(t *testing.T) {
	for _, fault := range []error{nil, errors.New("no pages to lock")} {
		c := newCrew(t, 1, 1, false)
		rows := &pinner{err: fault}
		s, err := c.saver(0, NewDir(t.TempDir()), rows, 1)
		must(t, err)
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

// A state is sealed when its norms arrive. If late norms end the run before the state, the state is discarded.
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
			return savers[r].Finish(t.Context(), solver.Result{Iterations: known, Reason: solver.Converged})
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

// A directory that not all nodes share is refused at the start. If rank 0 later does not see a part, the checkpoint
// fails.
func TestPlaceHasToBeShared(t *testing.T) {
	c := newCrew(t, 3, 1, false)
	dir := t.TempDir()
	err := c.try(func(r int) error {
		store := NewDir(dir)
		if r == 1 {
			store = NewDir(filepath.Join(dir, "elsewhere"))
		}
		s, err := c.saver(r, store, &rowsAfter{}, 1)
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

// On a full disk the checkpoint fails and the run goes on. The warning says how old the last good checkpoint is.
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
	must(t, os.WriteFile(filler, make([]byte, 28<<10), 0o666))
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
	if err := CheckDir(t.Context(), dir, same, 9, int64(98*mesh.RowBytes()), true); err == nil ||
		!strings.Contains(err.Error(), "are needed for checkpoint.keep 9 and one under way") {
		t.Errorf("the launcher would start: %v", err)
	}
	must(t, os.Remove(filler))
	c.save(savers, 30)
	if s := savers[0].Stats(); s.Written != 2 || s.Sweeps != 30 {
		t.Errorf("%+v, want two written", s)
	}
}

// All ranks go on with the aggregates of the state that they load, and without any where it had none.
func TestAggregatesGoOn(t *testing.T) {
	for name, want := range map[string]int{"none": 0, "after seven cycles": 7} {
		t.Run(name, func(t *testing.T) {
			c, place := newCrew(t, 2, 1, false), t.TempDir()
			c.aggregates = want
			c.save(c.savers(NewDir(place), 1), 10)
			state, err := newCrew(t, 3, 1, false).resume(place, endless)
			if err != nil || state.Aggregates != want {
				t.Errorf("%+v (%v), want aggregates after %d cycles", state, err, want)
			}
		})
	}
}
