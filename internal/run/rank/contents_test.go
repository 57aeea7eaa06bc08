package rank

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
)

const wide, high = 2049, 257 // of a mesh whose rows a rank on two cores does not keep

// writeCoefficient writes an array of coefficients to path in place, as numpy.save does. All have the value; there is
// no material in the lower half of column 7.
func writeCoefficient(t *testing.T, path string, value float64) {
	t.Helper()
	text := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }", high, wide)
	data := append([]byte("\x93NUMPY\x01\x00\x76\x00"), fmt.Sprintf("%-117s\n", text)...)
	for i := range wide * high {
		v := value
		if i%wide == 7 && i/wide > high/2 {
			v = 0
		}
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// solveFile solves a problem with the coefficient of a file on a rank alone. changed is called before the first sweep.
// It returns the report.
func solveFile(t *testing.T, dir, file string, changed func(), keys ...string) output.Report {
	t.Helper()
	set := append([]string{fmt.Sprintf("grid.nx=%d", wide), fmt.Sprintf("grid.ny=%d", high), "problem.right=1",
		"problem.top=neumann(0)", "problem.bottom=neumann(0)", "problem.coefficient=" + file, "output.dir=" + dir,
		"device.backend=cpu", "run.ranks=1"}, keys...)
	cfg, err := configs.Load(configs.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	o := testOptions(t, dir, 0, 1)
	var report output.Report
	o.Config = cfg
	o.Watch = func(e roster.Event) { // a rank alone calls it before it goes on
		if e.Kind == roster.Started {
			changed()
		}
	}
	o.Summarize = func(r output.Report, _ *output.Held) error {
		report = r
		return nil
	}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return report
}

// A run keeps to the file that it has opened, also if another one takes its name.
func TestFileIsReplacedDuringTheSweeps(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	file := filepath.Join(t.TempDir(), "a.npy")
	writeCoefficient(t, file, 1)
	whole := solveFile(t, t.TempDir(), file, func() {})
	got := solveFile(t, t.TempDir(), file, func() {
		writeCoefficient(t, file+".new", 2)
		if err := os.Rename(file+".new", file); err != nil {
			t.Error(err)
		}
	})
	if err := got.Fault(); err != nil || got.FieldHash != whole.FieldHash ||
		*got.Results.Energy != *whole.Results.Energy || *got.Accuracy.Error != *whole.Accuracy.Error {
		t.Errorf("%v; results %+v, want %+v", err, got.Results, whole.Results)
	}
}

// A file that is written again while the run sweeps leaves the field of the problem with which the run has begun,
// without results and without other outputs that would need the file.
func TestFileIsWrittenAgainDuringTheSweeps(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	file := filepath.Join(t.TempDir(), "a.npy")
	writeCoefficient(t, file, 1)
	keys := []string{"output.field=u.npy", "output.materials=true", "output.picture=u.png"}
	whole := solveFile(t, t.TempDir(), file, func() {}, keys...)
	if err := whole.Fault(); err != nil || whole.Results == nil || whole.Accuracy.Error == nil {
		t.Fatalf("as it is: %v, results %v, accuracy %+v", err, whole.Results, whole.Accuracy)
	}
	for _, name := range []string{"u.npy", "u.vti"} {
		dir := t.TempDir()
		keys[0] = "output.field=" + name
		got := solveFile(t, dir, file, func() { writeCoefficient(t, file, 2) }, keys...)
		writeCoefficient(t, file, 1)
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		cause := fmt.Sprintf("rank 0 on %s: problem.coefficient %q: row ", host, file)
		want := []string{"no results: " + cause, "u.png is not written: " + cause}
		if name == "u.npy" {
			want = append(want, "u-coefficient.npy is not written: "+cause, "u-outside.npy is not written: "+cause)
		} else {
			want = append(want, "no coefficient in u.vti: "+cause, "no vtkGhostType in u.vti: "+cause)
		}
		fault := got.Fault()
		if fault == nil {
			t.Fatalf("%s: the change is not noticed", name)
		}
		for _, text := range want {
			if !strings.Contains(fault.Error(), text) {
				t.Errorf("%s: %v, want %s", name, fault, text)
			}
		}
		if lines := strings.Count(fault.Error(), "\n") + 1; lines != len(want) ||
			strings.Count(fault.Error(), ": the file was changed while the run needs it") != lines {
			t.Errorf("%s: %v, want %d faults", name, fault, len(want))
		}
		if got.FieldHash != whole.FieldHash || got.Results != nil || got.Accuracy.Why != "there are no results" {
			t.Errorf("%s: field %s, want %s; results %v, accuracy %+v", name, got.FieldHash, whole.FieldHash,
				got.Results, got.Accuracy)
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range files {
			names = append(names, f.Name())
		}
		left := map[string][]string{"u.npy": {"history.csv", "report.json", "u-fixed.npy", "u.npy"},
			"u.vti": {"history.csv", "report.json", "u.vti"}}
		if want := left[name]; !slices.Equal(names, want) {
			t.Errorf("%s: %v in output.dir, want %v", name, names, want)
		}
	}
}

// A file that takes the place of the one with which rank 0 has planned the run, at any time while the ranks open it,
// ends the run on all ranks, with key and file.
func TestFileIsReplacedWhileRanksStart(t *testing.T) {
	for size := 1; size <= 3; size++ {
		dir, meet := t.TempDir(), t.TempDir()
		file := filepath.Join(t.TempDir(), "a.npy")
		writeCoefficient(t, file, 1)
		writeCoefficient(t, file+".new", 2)
		cfg, err := configs.Load(configs.Options{Set: []string{fmt.Sprintf("grid.nx=%d", wide),
			fmt.Sprintf("grid.ny=%d", high), "problem.right=1", "problem.coefficient=" + file, "output.dir=" + dir,
			"device.backend=cpu", fmt.Sprintf("run.ranks=%d", size), "nats.rendezvous=" + meet}})
		if err != nil {
			t.Fatal(err)
		}
		var ranks []Options
		for i := range size {
			o := testOptions(t, dir, i, size)
			o.Config = cfg
			o.Check = func(ctx context.Context, c configs.Config) (configs.Planned, error) {
				p, err := problem.New(ctx, c)
				if err != nil {
					return configs.Planned{}, err
				}
				contents, err := p.Contents(ctx)
				err = errors.Join(err, p.Close(), os.Rename(file+".new", file))
				return configs.Planned{Config: c, Contents: contents}, err
			}
			ranks = append(ranks, o)
		}
		_, errs := runAll(t, ranks)
		want := regexp.MustCompile(`problem\.coefficient "` + regexp.QuoteMeta(file) + `": (it is not the file with ` +
			`which the run was planned: it was changed since then, or is another one for rank 0 \(|` +
			`rank 0 \(host .*\) and rank \d \(host .*\) read different files; )`)
		for i, err := range errs {
			if err == nil || !want.MatchString(err.Error()) {
				t.Errorf("%d ranks: rank %d: %v, want %v", size, i, err, want)
			}
		}
	}
}
