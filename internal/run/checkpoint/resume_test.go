package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"jacobi/configs"
)

// Any number of ranks resumes from a checkpoint of another number of ranks, with the norms of all sweeps before.
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
			want, s := normsTo(30), state.Start
			if s.Iterations != 30 || !slices.Equal(state.Norms, want) || !slices.Equal(s.Norms, want) {
				t.Errorf("periodic %v, %d ranks: %+v", periodic, ranks, state)
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("%v, %v: more is left than the sets", entries, err)
		}
	}
}

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
			if err := c.damage(filepath.Join(dir, newest, c.file)); err != nil {
				t.Fatal(err)
			}
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
			if err := os.RemoveAll(filepath.Join(dir, setName(10, t.Name()))); err != nil {
				t.Fatal(err)
			}
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
