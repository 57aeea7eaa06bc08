package study

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/results"
	"jacobi/internal/observe/output"
)

// specOf returns the study of runs that differ from the keys of set.
func specOf(t *testing.T, set []string, runs ...Keys) *Spec {
	t.Helper()
	base, err := configs.LoadBase(configs.Options{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSpec(t.Context(), base, runs, From{}, false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// two are the runs of most tables here.
var two = []Keys{{"grid.nx": 9, "problem.top": "sin(x)"}, {"grid.nx": 17, "problem.top": "sin(x)"}}

// openTable opens a table of s.
func openTable(s *Spec, path string, goOn bool) (*Table, error) {
	return OpenTable(path, Columns{Keys: Names(nil, s.Runs), Probes: []string{"a", "cut"}}, s, goOn)
}

// written opens a table of s, adds lines, closes it, and returns its contents.
func written(t *testing.T, s *Spec, path string, goOn bool, lines ...Line) string {
	t.Helper()
	table, err := openTable(s, path, goOn)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if err := table.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	return contents(t, path)
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// met is the line of a run that has met its tolerance.
func met(s *Spec, run int) Line {
	return lineOf(run, s.Runs[run-1], Result{Report: &output.Report{Verdict: configs.Met, Sweeps: run}})
}

// A table that goes on keeps the lines of runs with a result, and loses those of the others, and the one that was cut
// off. It is as it was until a line is added.
func TestTableGoesOn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"t.csv", "t.jsonl"} {
		path := filepath.Join(t.TempDir(), name)
		s := specOf(t, nil, append(two, Keys{"problem.left": 1_000_000, "problem.source": "x +\r\n \"y\""},
			Keys{"problem.left": 1.5})...)
		whole := written(t, s, path, false, met(s, 1),
			lineOf(2, s.Runs[1], Result{Refused: "a, \"reason\"\nand \x1b[31manother"}), met(s, 3))
		if _, err := openTable(s, path, false); err == nil || err.Error() !=
			fmt.Sprintf("--table %q: the file exists; --continue goes on from it, or name another one", path) {
			t.Errorf("%s: opened again: %v", name, err)
		}
		cut := whole + whole[len(whole)-30:len(whole)-3]
		write(t, path, cut)
		table, err := openTable(s, path, true)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !table.Done[1] || table.Done[2] || !table.Done[3] || table.Summary() != "2 met" || table.Reasons() != "" {
			t.Errorf("%s: done %v, %s, %q; want runs 1 and 3", name, table.Done, table.Summary(), table.Reasons())
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
		if got := contents(t, path); got != cut {
			t.Errorf("%s: a table without a new line is %q, want %q", name, got, cut)
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		got := written(t, s, path, true, lineOf(2, s.Runs[1], Result{Failed: "again"}), met(s, 4))
		fresh := filepath.Join(t.TempDir(), name)
		want := written(t, s, fresh, false, met(s, 1), met(s, 3), lineOf(2, s.Runs[1], Result{Failed: "again"}),
			met(s, 4))
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
		for dir, want := range map[string]int{filepath.Dir(path): 2, filepath.Dir(fresh): 2} { // with the identity
			if left, err := os.ReadDir(dir); err != nil || len(left) != want {
				t.Errorf("left: %v, %v", left, err)
			}
		}
	}
}

// What is no table of the study is refused, with what to do, and stays as it is.
func TestOtherTablesAreRefused(t *testing.T) {
	t.Parallel()
	const (
		another = "; name another one"
		goOn    = "; go on with the keys and files that its runs had, or name another table"
		begins  = "it does not begin with the columns of a table" + goOn
	)
	dir := t.TempDir()
	s := specOf(t, nil, two...)
	other := specOf(t, nil, Keys{"grid.nx": 9, "problem.left": "1"}, Keys{"grid.nx": 17})
	table := written(t, s, filepath.Join(dir, "right.csv"), false, met(s, 1))
	lines := written(t, s, filepath.Join(dir, "right.jsonl"), false, met(s, 1))
	for i, c := range []struct{ ext, data, want string }{
		{"csv", "\n\n\n", begins},
		{"csv", "\x00\x01\"\n\xff", begins},
		{"csv", "\x1b[2J,b\n1,2\n", `its column 1 is "\x1b[2J", and that of this study is "run"` + goOn},
		{"csv", written(t, other, filepath.Join(dir, "other.csv"), false),
			`its column 3 is "problem.left", and that of this study is "problem.top"` + goOn},
		{"csv", strings.Replace(table, ",probe_cut", "", 1),
			`its column 29 is none, and that of this study is "probe_cut"` + goOn},
		{"csv", table + "2\n", "line 3 is no line of this table: wrong number of fields" + goOn},
		{"csv", strings.ReplaceAll(table, "1,9,", "x\a,9,"), `line 2: run "x\a" is no number` + goOn},
		{"csv", strings.ReplaceAll(table, "1,9,", "3,9,"), "line 2: run 3 is not one of these 2 runs" + goOn},
		{"csv", strings.ReplaceAll(table, "sin", "\x1bcos"),
			`line 2: run 1 had problem.top=\x1bcos(x), and now has sin(x)` + goOn},
		{"csv", strings.ReplaceAll(table, "met", "m\x1bt"), `line 2: "m\x1bt" is no verdict of a run` + goOn},
		{"csv", table + table[strings.Index(table, "\n")+1:], "line 3: run 1 comes twice" + goOn},
		{"jsonl", "\n\n", "line 1 is no line of a table" + goOn},
		{"jsonl", "\x00\x01\n\xff", "line 1 is no line of a table" + goOn},
		{"jsonl", `{"a": 1}` + "\n", "line 1: run 0 is not one of these 2 runs" + goOn},
		{"jsonl", lines + strings.ReplaceAll(lines, "sin", "cos"), "line 2: run 1 comes twice" + goOn},
		{"jsonl", strings.ReplaceAll(lines, "problem.top", "problem.\\u001b"),
			`line 1: run 1 had problem.\x1b=sin(x), and now has ` + goOn},
	} {
		path := filepath.Join(dir, fmt.Sprintf("%d.%s", i, c.ext))
		refused := func(want string) {
			t.Helper()
			_, err := openTable(s, path, true)
			if want = fmt.Sprintf("--table %q: %s", path, want); err == nil || err.Error() != want {
				t.Errorf("%q: %v, want %s", c.data, err, want)
			}
			if got := contents(t, path); got != c.data {
				t.Errorf("%q became %q", c.data, got)
			}
		}
		write(t, path, c.data)
		name := filepath.Base(path) + ".study"
		refused(name + " is not beside it, so it is no table of a study" + another)
		write(t, IdentityFile(path), "no JSON")
		refused(name + " beside it is not what a study has written" + another)
		write(t, IdentityFile(path), contents(t, IdentityFile(filepath.Join(dir, "right."+c.ext))))
		refused(c.want)
	}
	path := filepath.Join(dir, "empty.csv")
	write(t, path, "")
	want := fmt.Sprintf("--table %q: empty.csv.study is not beside it, so it is no table of a study%s", path, another)
	if _, err := openTable(s, path, true); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	write(t, IdentityFile(path), contents(t, IdentityFile(filepath.Join(dir, "right.csv"))))
	if got := written(t, s, path, true, met(s, 1)); got != table { // a study that was killed at once
		t.Errorf("%q, want %q", got, table)
	}
	for path, want := range map[string]string{
		"t.txt":                        "the name has to end in .csv or .jsonl",
		filepath.Join(dir, "no/t.csv"): "there is no such directory",
	} {
		if _, err := openTable(s, path, false); err == nil || err.Error() !=
			fmt.Sprintf("--table %q: %s", path, want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A table has one study at a time.
func TestTableHasOneStudy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.csv")
	s := specOf(t, nil, two...)
	table, err := openTable(s, path, false)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(fmt.Sprintf(`^--table %q: in use by run study, process %d on .*; one run at a time can `+
		`use it$`, path, os.Getpid()))
	for _, goOn := range []bool{false, true} {
		if _, err := openTable(s, path, goOn); err == nil || !want.MatchString(err.Error()) {
			t.Errorf("--continue %v: %v, want %v", goOn, err, want)
		}
	}
	if err := table.Add(met(s, 1)); err != nil {
		t.Fatal(err)
	}
	// An editor saves the file.
	if err := os.Rename(path, path+"~"); err != nil {
		t.Fatal(err)
	}
	write(t, path, contents(t, path+"~"))
	lost := fmt.Sprintf("--table %q: another program has replaced or removed the file", path)
	if err := table.Add(met(s, 2)); err == nil || err.Error() != lost || table.Done[2] {
		t.Errorf("%v, want %s", err, lost)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	written(t, s, path, true, met(s, 2))
}

// A table that cannot be written ends with an error that names it.
func TestTableOnAFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	table, err := openTable(specOf(t, nil, two...), path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := table.file.Close(); err != nil {
		t.Fatal(err)
	}
	if table.file, err = os.OpenFile("/dev/full", os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	table.path = "/dev/full"
	err = table.Add(lineOf(1, Keys{}, Result{Failed: "for a reason"}))
	if want := `--table "/dev/full": write: no space left on device`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if table.Done[1] {
		t.Error("a line that was not written counts as done")
	}
}

// Probes have a column each, empty where a run has no report. An error that may be far too small is left out.
func TestTableHasProbes(t *testing.T) {
	t.Parallel()
	norm, value := 1e-9, 0.25
	rep := output.Report{Verdict: configs.Met, Norm: &norm, Sweeps: 7, Results: &results.Results{Mean: &value,
		Regions: []results.Region{{Name: "a", Flux: &norm}, {Name: "b", Flux: &value, Min: 0.5, Floating: true}},
		Balance: results.Balance{Source: &value, Sides: map[string]results.Through{"top": {In: &norm}}}},
		Accuracy: &output.AccuracyReport{Error: &value},
		Probed:   output.Probed{"a": {&value}, "cut": {&norm, nil, &value}}}
	unsure := rep
	unsure.Accuracy = &output.AccuracyReport{Error: &value, Uncertain: true}
	s := specOf(t, nil, Keys{"grid.nx": "9"}, Keys{"grid.nx": "9"}, Keys{"grid.nx": "9"}, Keys{"problem.top": 1})
	got := written(t, s, filepath.Join(t.TempDir(), "t.csv"), false, lineOf(1, s.Runs[0], Result{Report: &rep}),
		lineOf(2, s.Runs[1], Result{Failed: "why"}), lineOf(3, s.Runs[2], Result{Refused: "why not"}),
		lineOf(4, s.Runs[3], Result{Report: &unsure}))
	const want = `run,grid.nx,problem.top,verdict,reason,iterations,seconds,norm,error,field_hash,energy,min,max,` +
		`mean,flux_left,flux_right,flux_top,flux_bottom,in_left,in_right,in_top,in_bottom,` +
		`source,screening,remainder,charges,floating,probe_a,probe_cut
1,9,,met,,7,0,1e-09,0.25,,,0,0,0.25,,,,,,,1e-09,,0.25,,,a=1e-09;b=0.25,b=0.5,0.25,1e-09;;0.25
2,9,,failed,why,,,,,,,,,,,,,,,,,,,,,,,,
3,9,,refused,why not,,,,,,,,,,,,,,,,,,,,,,,,
4,,1,met,,7,0,1e-09,,,,0,0,0.25,,,,,,,1e-09,,0.25,,,a=1e-09;b=0.25,b=0.5,0.25,1e-09;;0.25
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A summary has the first reasons of refused and failed runs. What a run says cannot change the terminal.
func TestReasonsAreShownWhole(t *testing.T) {
	t.Parallel()
	s := specOf(t, nil, Keys{}, Keys{}, Keys{}, Keys{})
	table, err := openTable(s, filepath.Join(t.TempDir(), "t.jsonl"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	long := strings.Repeat("x", maxReason)
	err = errors.Join(table.Add(lineOf(1, nil, Result{Failed: "a\n\x1b[2J\u202eb"})),
		table.Add(lineOf(2, nil, Result{Refused: long + "y"})), table.Add(lineOf(3, nil, Result{Refused: "also"})))
	if err != nil {
		t.Fatal(err)
	}
	want := "run 2 refused: " + long + "…\nrun 1 failed: a; \\x1b[2J\\u202eb\n"
	if table.Reasons() != want || table.Amiss() != "2 refused, 1 failed" {
		t.Errorf("reasons %q, amiss %q", table.Reasons(), table.Amiss())
	}
}
