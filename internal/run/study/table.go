package study

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/regular"
	"jacobi/internal/compute/results"
	"jacobi/internal/observe/output"
)

// Verdicts of runs that have no report. The others are those of configs.
const (
	Refused = "refused"
	Failed  = "failed"
)

// Line is a run in the table of a study.
type Line struct {
	Run     int              `json:"run"` // from 1
	Keys    Keys             `json:"keys"`
	Verdict string           `json:"verdict"`
	Reason  string           `json:"reason,omitempty"` // of a run that was refused or has failed
	Steps   int              `json:"iterations"`       // sweeps or cycles
	Seconds float64          `json:"seconds"`          // of the sweeps or cycles
	Norm    *float64         `json:"norm"`
	SHA256  string           `json:"field_sha256,omitempty"`
	Results *results.Results `json:"results,omitempty"`
	Probes  output.Probed    `json:"probes,omitempty"`
}

// LineOf returns the line of a run.
func LineOf(run int, keys Keys, r Result) Line {
	l := Line{Run: run, Keys: keys}
	switch rep := r.Report; {
	case r.Refused != "":
		l.Verdict, l.Reason = Refused, r.Refused
	case rep == nil:
		l.Verdict, l.Reason = Failed, r.Failed
	default:
		l.Verdict, l.Steps, l.Seconds, l.Norm = string(rep.Verdict), rep.Sweeps, rep.Times.Sweeps, rep.Norm
		l.SHA256, l.Results, l.Probes = rep.FieldSHA256, rep.Results, rep.Probed
		if err := rep.Fault(); err != nil {
			l.Verdict, l.Reason = Failed, err.Error()
		}
	}
	return l
}

// Table is the table of a study: a file that grows by a line a run.
type Table struct {
	path  string
	file  *os.File
	asCSV bool
	Columns
	Done  map[int]bool
	Count map[string]int  // lines by verdict
	first map[string]Line // the first line by verdict, of those that have a reason
}

// Columns are those of a table that are not the same for every study.
type Columns struct {
	Keys   []string
	Probes []string // their names
}

// maxTable bounds a table that a study goes on from, in bytes.
const maxTable = 4 << 30

// sides are those of the mesh in the order of their columns.
var sides = []string{"left", "right", "top", "bottom"}

// OpenTable creates the table of runs, or, with goOn, opens the one that an earlier study has left. A line that was cut
// off is removed. It fails if a line is not one of these runs.
func OpenTable(path string, columns Columns, runs []Keys, goOn bool) (t *Table, err error) {
	t = &Table{path: path, Columns: columns, Done: map[int]bool{}, Count: map[string]int{}, first: map[string]Line{}}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		t.asCSV = true
	case ".jsonl":
	default:
		return nil, fmt.Errorf("--table %q: the name has to end in .csv or .jsonl", path)
	}
	flags := os.O_RDWR | os.O_CREATE | unix.O_NOFOLLOW
	if !goOn {
		flags |= os.O_EXCL
	}
	t.file, err = regular.OpenFile(path, flags, 0o666)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("--table %q: the file exists; --continue goes on from it, or name another one", path)
	}
	if err != nil {
		return nil, fmt.Errorf("--table: %w", err)
	}
	if err := t.begin(runs); err != nil {
		return nil, errors.Join(fmt.Errorf("--table %q: %w", path, err), t.file.Close())
	}
	return t, nil
}

// begin reads the lines that are there.
func (t *Table) begin(runs []Keys) error {
	data, err := io.ReadAll(io.LimitReader(t.file, maxTable))
	if err != nil {
		return err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if err := t.file.Truncate(int64(len(whole))); err != nil {
		return err
	}
	if _, err := t.file.Seek(int64(len(whole)), io.SeekStart); err != nil {
		return err
	}
	if t.asCSV && len(whole) == 0 {
		return t.record(t.head())
	}
	if t.asCSV {
		return t.readCSV(whole, runs)
	}
	for n, text := range bytes.Split(bytes.TrimSpace(whole), []byte("\n")) {
		if len(text) == 0 {
			continue
		}
		var l Line
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		if err := t.known(n+1, l, func(name string) string { return valueText(l.Keys[name]) }, runs); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) readCSV(data []byte, runs []Keys) error {
	lines, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return err
	}
	if !slices.Equal(lines[0], t.head()) {
		return fmt.Errorf("its columns are those of another study: %s", strings.Join(lines[0], ", "))
	}
	for n, l := range lines[1:] {
		run, err := strconv.Atoi(l[0])
		if err != nil {
			return fmt.Errorf("line %d: run %q is no number", n+2, l[0])
		}
		value := func(name string) string { return l[1+slices.Index(t.Keys, name)] }
		had := Line{Run: run, Verdict: l[1+len(t.Keys)], Reason: l[2+len(t.Keys)]}
		if err := t.known(n+2, had, value, runs); err != nil {
			return err
		}
	}
	return nil
}

// known notes a line of an earlier study.
func (t *Table) known(line int, l Line, value func(name string) string, runs []Keys) error {
	run := l.Run
	if run < 1 || run > len(runs) || t.Done[run] {
		return fmt.Errorf("line %d: run %d is not one of these %d runs, or comes twice", line, run, len(runs))
	}
	for _, name := range t.Keys {
		if had, has := value(name), valueText(runs[run-1][name]); had != has {
			return fmt.Errorf("line %d: run %d had %s=%s, and now has %s", line, run, name, had, has)
		}
	}
	t.count(l)
	return nil
}

// count notes a line that is in the file.
func (t *Table) count(l Line) {
	t.Done[l.Run] = true
	t.Count[l.Verdict]++
	if _, known := t.first[l.Verdict]; !known && l.Reason != "" {
		t.first[l.Verdict] = l
	}
}

func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case map[string]any, []any:
		b, err := json.Marshal(v)
		if err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(v)
}

func (t *Table) head() []string {
	columns := append([]string{"run"}, t.Keys...)
	columns = append(columns, "verdict", "reason", "iterations", "seconds", "norm", "field_sha256",
		"energy", "min", "max", "mean")
	for _, side := range sides {
		columns = append(columns, "flux_"+side)
	}
	columns = append(columns, "charges")
	for _, name := range t.Probes {
		columns = append(columns, "probe_"+name)
	}
	return columns
}

// Add appends the line of a run. It is in the file when Add returns.
func (t *Table) Add(l Line) error {
	var err error
	if t.asCSV {
		err = t.record(t.columns(l))
	} else {
		var b []byte
		if b, err = json.Marshal(l); err == nil {
			err = t.write(append(b, '\n'))
		}
	}
	if err != nil {
		return err
	}
	t.count(l)
	return nil
}

// columns returns a line as head names its columns.
func (t *Table) columns(l Line) []string {
	values := []string{strconv.Itoa(l.Run)}
	for _, name := range t.Keys {
		values = append(values, valueText(l.Keys[name]))
	}
	values = append(values, l.Verdict, strings.ReplaceAll(l.Reason, "\n", "; "))
	if l.Verdict == Refused || l.Verdict == Failed {
		return append(values, make([]string, len(t.head())-len(values))...)
	}
	values = append(values, strconv.Itoa(l.Steps), number(&l.Seconds), number(l.Norm), l.SHA256)
	values = append(values, resultColumns(l.Results)...)
	for _, name := range t.Probes {
		var line []string
		for _, v := range l.Probes[name] {
			line = append(line, number(v))
		}
		values = append(values, strings.Join(line, ";"))
	}
	return values
}

// resultColumns returns the columns of results, which may be nil.
func resultColumns(r *results.Results) (values []string) {
	if r == nil {
		return make([]string, 4+len(sides)+1)
	}
	values = append(values, number(r.Energy), number(&r.Min.Value), number(&r.Max.Value), number(r.Mean))
	for _, side := range sides {
		values = append(values, number(r.Flux[side]))
	}
	var charges []string
	for i, region := range r.Regions {
		name := region.Name
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		charges = append(charges, name+"="+number(region.Flux))
	}
	return append(values, strings.Join(charges, ";"))
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

// record appends a line of CSV.
func (t *Table) record(values []string) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.Write(values); err != nil {
		return err
	}
	w.Flush()
	return t.write(b.Bytes())
}

func (t *Table) write(b []byte) error {
	if _, err := t.file.Write(b); err != nil {
		if fault, ok := errors.AsType[*os.PathError](err); ok {
			err = fault.Err
		}
		return fmt.Errorf("--table %q: write: %w", t.path, err)
	}
	return nil
}

// Close closes the file.
func (t *Table) Close() error { return t.file.Close() }

// Summary counts the lines by their verdicts.
func (t *Table) Summary() string {
	return t.counts(string(configs.Met), string(configs.Done), string(configs.Missed), Refused, Failed)
}

// Amiss counts the lines of runs that have not done what they were to do; "" for none.
func (t *Table) Amiss() string { return t.counts(string(configs.Missed), Refused, Failed) }

// Reasons says, in a line each, why the first run was refused, and why the first one failed.
func (t *Table) Reasons() (text string) {
	for _, v := range []string{Refused, Failed} {
		if l, known := t.first[v]; known {
			text += fmt.Sprintf("run %d %s: %s\n", l.Run, v, strings.ReplaceAll(l.Reason, "\n", "; "))
		}
	}
	return text
}

func (t *Table) counts(verdicts ...string) string {
	var parts []string
	for _, v := range verdicts {
		if n := t.Count[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return strings.Join(parts, ", ")
}
