package study

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jacobi/configs"
	"jacobi/internal/observe/output"
)

// openTable opens a table of three runs.
func openTable(t *testing.T, path string, goOn bool) (*Table, error) {
	t.Helper()
	runs, names, err := Vary([]string{"grid.nx=9,17", "problem.top=sin(x)"})
	if err != nil {
		t.Fatal(err)
	}
	return OpenTable(path, Columns{Keys: names, Probes: []string{"a", "cut"}}, runs, goOn)
}

// A table that goes on keeps its whole lines and loses the one that was cut off. Lines of other runs are refused.
func TestTableGoesOn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"t.csv", "t.jsonl"} {
		path := filepath.Join(t.TempDir(), name)
		table, err := openTable(t, path, false)
		if err != nil {
			t.Fatal(err)
		}
		l := LineOf(1, Keys{"grid.nx": "9", "problem.top": "sin(x)"}, Result{Refused: "a, \"reason\"\nand another"})
		if err := table.Add(l); err != nil {
			t.Fatal(err)
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := openTable(t, path, false); err == nil || !strings.Contains(err.Error(), "the file exists") {
			t.Errorf("%s: opened again: %v", name, err)
		}
		if err := os.WriteFile(path, append(whole, whole[:len(whole)-3]...), 0o600); err != nil && name == "t.jsonl" {
			t.Fatal(err)
		}
		if name == "t.csv" { // the head does not come twice
			if err := os.WriteFile(path, append(whole, "2,17,si"...), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if table, err = openTable(t, path, true); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		const reasons = "run 1 refused: a, \"reason\"; and another\n"
		if !table.Done[1] || len(table.Done) != 1 || table.Summary() != "1 refused" || table.Reasons() != reasons {
			t.Errorf("%s: done %v, %s, %q; want run 1, refused", name, table.Done, table.Summary(), table.Reasons())
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
		if kept, err := os.ReadFile(path); err != nil || string(kept) != string(whole) {
			t.Errorf("%s: kept %q, %v; want %q", name, kept, err, whole)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(whole), "sin(x)", "cos(x)")), 0o600); err != nil {
			t.Fatal(err)
		}
		want := "run 1 had problem.top=cos(x), and now has sin(x)"
		if _, err := openTable(t, path, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of other runs: %v, want %s", name, err, want)
		}
	}
	if _, err := openTable(t, "t.txt", false); err == nil {
		t.Error("a table that is no CSV was opened")
	}
}

// A table that cannot be written ends with an error that names it.
func TestTableOnAFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	table, err := openTable(t, path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	if table.file, err = os.OpenFile("/dev/full", os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	err = table.Add(LineOf(1, Keys{}, Result{Failed: "for a reason"}))
	if want := "--table \"" + path + "\": write: no space left on device"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if table.Done[1] {
		t.Error("a line that was not written counts as done")
	}
}

// Probes have a column each, empty where a run has no report.
func TestTableHasProbes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.csv")
	table, err := openTable(t, path, false)
	if err != nil {
		t.Fatal(err)
	}
	norm, value := 1e-9, 0.25
	rep := &output.Report{Verdict: configs.Met, Norm: &norm, Sweeps: 7,
		Probed: output.Probed{"a": {&value}, "cut": {&norm, nil, &value}}}
	keys := Keys{"grid.nx": "9"}
	err = errors.Join(table.Add(LineOf(1, keys, Result{Report: rep})),
		table.Add(LineOf(2, keys, Result{Failed: "why"})),
		table.Add(LineOf(3, keys, Result{Refused: "why not"})), table.Add(LineOf(4, keys, Result{Refused: "also"})),
		table.Close())
	if err != nil {
		t.Fatal(err)
	}
	const want = `run,grid.nx,problem.top,verdict,reason,iterations,seconds,norm,field_sha256,energy,min,max,mean,` +
		`flux_left,flux_right,flux_top,flux_bottom,charges,probe_a,probe_cut
1,9,,met,,7,0,1e-09,,,,,,,,,,,0.25,1e-09;;0.25
2,9,,failed,why,,,,,,,,,,,,,,,
3,9,,refused,why not,,,,,,,,,,,,,,,
4,9,,refused,also,,,,,,,,,,,,,,,
`
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	const reasons = "run 3 refused: why not\nrun 2 failed: why\n"
	if table.Reasons() != reasons || table.Amiss() != "2 refused, 1 failed" {
		t.Errorf("reasons %q, amiss %q", table.Reasons(), table.Amiss())
	}
}
