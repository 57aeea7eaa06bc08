package study

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
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
	SHA256  string           `json:"field_hash,omitempty"`
	Results *results.Results `json:"results,omitempty"`
	Probes  output.Probed    `json:"probes,omitempty"`
	// Accuracy is nil without results.
	Accuracy *output.AccuracyReport `json:"accuracy,omitempty"`
}

// lineOf returns the line of a run.
func lineOf(run int, keys Keys, r Result) Line {
	l := Line{Run: run, Keys: keys}
	switch rep := r.Report; {
	case r.Refused != "":
		l.Verdict, l.Reason = Refused, r.Refused
	case rep == nil:
		l.Verdict, l.Reason = Failed, r.Failed
	default:
		l.Verdict, l.Steps, l.Seconds, l.Norm = string(rep.Verdict), rep.Sweeps, rep.Times.Sweeps, rep.Norm
		l.SHA256, l.Results, l.Probes = rep.FieldHash, rep.Results, rep.Probed
		if rep.Results != nil {
			l.Accuracy = rep.Accuracy
		}
		if err := rep.Fault(); err != nil {
			l.Verdict, l.Reason = Failed, err.Error()
		}
	}
	return l
}

// Table is the table of a study: a file that grows by a line a run.
type Table struct {
	path  string
	lock  *dirlock.Lock
	file  *os.File
	asCSV bool
	Columns
	Done    map[int]bool
	Count   map[string]int  // lines by verdict
	first   map[string]Line // the first line by verdict, of those that have a reason
	earlier *earlier        // what an earlier study has left, until this one adds a line; nil for none
}

// Columns are those of a table that are not the same for every study.
type Columns struct {
	Keys   []string
	Probes []string // their names
}

// sides are those of the mesh in the order of their columns.
var sides = []string{"left", "right", "top", "bottom"}

// OpenTable creates the table of a study, or, with goOn, opens the one that the study has left. It changes nothing of
// that before the first line is added. Close closes it; meanwhile no other study can open it.
func OpenTable(path string, columns Columns, s *Spec, goOn bool) (t *Table, err error) {
	t = &Table{path: path, Columns: columns, Done: map[int]bool{}, Count: map[string]int{}, first: map[string]Line{}}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		t.asCSV = true
	case ".jsonl":
	default:
		return nil, fmt.Errorf("--table %q: the name has to end in .csv or .jsonl", path)
	}
	if t.lock, err = dirlock.TakeFile(path, "study"); err == nil {
		err = t.open(s, goOn)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("there is no such directory")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--table %q: %w", path, err), t.Close())
	}
	return t, nil
}

// open opens the file, or creates it and the one beside it.
func (t *Table) open(s *Spec, goOn bool) (err error) {
	const flags = os.O_RDWR | os.O_APPEND | unix.O_NOFOLLOW
	t.file, err = regular.OpenFile(t.path, flags, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return reason(err)
	case goOn:
		return t.goOn(s)
	default:
		return errors.New("the file exists; --continue goes on from it, or name another one")
	}
	if err := s.identity().write(t.path); err != nil {
		return err
	}
	if t.file, err = regular.OpenFile(t.path, flags|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
		return err
	}
	return t.begin()
}

// begin writes the head of an empty table.
func (t *Table) begin() error {
	if !t.asCSV {
		return nil
	}
	return t.record(t.head())
}

// count notes a line that is in the file.
func (t *Table) count(l Line) {
	t.Done[l.Run] = true
	t.Count[l.Verdict]++
	if _, known := t.first[l.Verdict]; !known && l.Reason != "" {
		t.first[l.Verdict] = l
	}
}

// maxReason bounds the characters of a reason that a summary shows.
const maxReason = 2000

func oneLine(reason string) string { return strings.ReplaceAll(reason, "\n", "; ") }

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
	columns = append(columns, "verdict", "reason", "iterations", "seconds", "norm", "error",
		"field_hash", "energy", "min", "max", "mean")
	for _, column := range []string{"flux_", "in_"} {
		for _, side := range sides {
			columns = append(columns, column+side)
		}
	}
	columns = append(columns, "source", "screening", "remainder", "charges", "floating")
	for _, name := range t.Probes {
		columns = append(columns, "probe_"+name)
	}
	return columns
}

// Add appends the line of a run. It is in the file when Add returns.
func (t *Table) Add(l Line) error {
	err := t.dropUnfinished()
	if err == nil {
		err = t.append(l)
	}
	if err != nil {
		return fmt.Errorf("--table %q: %w", t.path, err)
	}
	t.count(l)
	return nil
}

func (t *Table) append(l Line) error {
	if t.asCSV {
		return t.record(t.columns(l))
	}
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return t.write(append(b, '\n'))
}

// columns returns a line as head names its columns.
func (t *Table) columns(l Line) []string {
	values := []string{strconv.Itoa(l.Run)}
	for _, name := range t.Keys {
		values = append(values, valueText(l.Keys[name]))
	}
	values = append(values, l.Verdict, oneLine(l.Reason))
	if l.Verdict == Refused || l.Verdict == Failed {
		return append(values, make([]string, len(t.head())-len(values))...)
	}
	values = append(values, strconv.Itoa(l.Steps), number(&l.Seconds), number(l.Norm), number(l.error()), l.SHA256)
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

// error returns the estimate of the field's error; nil if there is none on which to rely.
func (l Line) error() *float64 {
	if l.Accuracy == nil || l.Accuracy.Uncertain {
		return nil
	}
	return l.Accuracy.Error
}

// resultColumns returns the columns of results, which may be nil.
func resultColumns(r *results.Results) (values []string) {
	if r == nil {
		return make([]string, 4+2*len(sides)+5)
	}
	values = append(values, number(r.Energy), number(&r.Min.Value), number(&r.Max.Value), number(r.Mean))
	for _, side := range sides {
		values = append(values, number(r.Flux[side]))
	}
	for _, side := range sides {
		values = append(values, number(r.Balance.Sides[side].In))
	}
	values = append(values, number(r.Balance.Source), number(r.Balance.Screening), number(r.Balance.Remainder))
	var charges, floating []string
	for i, region := range r.Regions {
		name := region.Name
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		charges = append(charges, name+"="+number(region.Flux))
		if region.Floating {
			floating = append(floating, name+"="+number(&region.Min))
		}
	}
	return append(values, strings.Join(charges, ";"), strings.Join(floating, ";"))
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

// write appends to the file. It fails if the file is no longer at its path, as when an editor has saved it.
func (t *Table) write(b []byte) error {
	mine, err := t.file.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Lstat(t.path); err != nil || !os.SameFile(mine, there) {
		return errors.New("another program has replaced or removed the file")
	}
	if _, err := t.file.Write(b); err != nil {
		return fmt.Errorf("write: %w", reason(err))
	}
	return nil
}

// Close closes the file, for other studies to open it.
func (t *Table) Close() (err error) {
	if t.file != nil {
		err = t.file.Close()
	}
	if t.lock != nil {
		err = errors.Join(err, t.lock.Release())
	}
	return err
}

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
			text += fmt.Sprintf("run %d %s: %s\n", l.Run, v, show.Cut(oneLine(l.Reason), maxReason))
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
