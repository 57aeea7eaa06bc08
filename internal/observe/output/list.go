package output

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/durable"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
)

// list says what a run puts in place. It is in the stage, in listFile, from before the first rename until after the
// last one, so that the next run can complete the renames after a crash.
type list struct {
	Run   string   `json:"run"`
	Files []string `json:"files"` // complete and durable, the report last
	// Stale are the files of the run before that go. Its report goes first: no report is ever beside files of another
	// run. The others go once all of Files are in place.
	Stale stale `json:"stale,omitzero"`
}

const (
	listFile  = "list"
	listDraft = "list.draft"
	// listRoom is enough for the names of two runs, eight each, in JSON, where a character takes up to six bytes.
	listRoom = 16 << 10
)

// write makes the list durable, in f, the draft of it. Its files must be staged.
func (l list) write(s stage, f File) error {
	for _, name := range l.Files {
		if _, err := os.Lstat(s.path(name)); err != nil {
			return err
		}
		if !isZarr(name) {
			continue
		}
		for _, part := range groupDirs {
			if err := durable.SyncDir(s.path(name + "/" + part)); err != nil {
				return err
			}
		}
	}
	b, err := json.Marshal(l)
	if err == nil {
		err = write(f, b)
	}
	if err == nil {
		err = s.rename(s.path(listDraft), s.path(listFile))
	}
	if err == nil {
		err = durable.SyncDir(s.path(""))
	}
	if err == nil {
		err = durable.SyncDir(s.dir)
	}
	return err
}

// carryOut does what the list says. A repetition does what is left of it. If it fails, the list stays, and the error
// says what is in place and where the rest is.
func (l list) carryOut(s stage) error {
	err := l.put(s)
	if err == nil {
		err = l.Stale.remove(s)
	}
	if err == nil {
		err = s.remove(s.path(replacedDir))
	}
	if err != nil {
		return fmt.Errorf("%w; %s", err, l.state(s))
	}
	return s.remove(s.path(listFile))
}

func (l list) put(s stage) error {
	for _, name := range l.Files { // none is put in place if one cannot be
		if s.has(name) {
			if err := checkTarget(s.final(name)); err != nil {
				return err
			}
		}
	}
	// The report in place is of the run before as long as that of this run, which comes last, is staged.
	if old := l.Stale.Report; old != "" && (s.has(old) || !slices.Contains(l.Files, old)) {
		if err := s.remove(s.final(old)); err != nil {
			return err
		}
	}
	for _, name := range l.Files {
		if err := s.put(name); err != nil {
			return err
		}
	}
	return durable.SyncDir(s.dir)
}

// state says which files are in place, and where the others are.
func (l list) state(s stage) string {
	var done, open []string
	for _, name := range l.Files {
		if s.has(name) {
			open = append(open, name)
		} else {
			done = append(done, name)
		}
	}
	has := strings.Join(done, ", ")
	if has == "" {
		has = "none of the files"
	}
	text := fmt.Sprintf("%s has %s of run %s", s.dir, has, show.Text(l.Run))
	if len(open) > 0 {
		text += fmt.Sprintf("; the rest (%s) is complete and lies in %s", strings.Join(open, ", "), s.path(""))
	}
	return text
}

// finish carries out the list of a run that was killed or failed while it did so, and says that; "" without a list.
func (s stage) finish() (note string, err error) {
	b, err := regular.ReadFile(s.path(listFile), listRoom)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var l list
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err == nil {
		err = l.check()
	}
	if err != nil {
		return "", fmt.Errorf("%s, of a run that was killed: %w", s.path(listFile), err)
	}
	if err := l.carryOut(s); err != nil {
		return "", fmt.Errorf("a run did not put all of its outputs in place, and the rest cannot be: %w. Move the "+
			"files of %s away, or remove it", err, s.path(""))
	}
	return "a run did not put all of its outputs in place; that is done now: " + l.state(s), nil
}

// check refuses names that are none of a run's files.
func (l list) check() error {
	names := slices.Concat(l.Files, l.Stale.Files)
	for _, name := range []string{l.Stale.Report, l.Stale.Series} {
		if name != "" {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if !isOutput(name) {
			return fmt.Errorf("%q is no file that a run writes", name)
		}
	}
	return nil
}

// earlier is what the report of an earlier run says of its files.
type earlier struct {
	report  string    // its name
	at      time.Time // when it was written
	Name    string
	RunID   string `json:"run_id"`
	Problem string
	Ended   time.Time
	Files   []FileReport
	Series  *SeriesReport
	Probes  *ProbesReport
}

// The report of an earlier run may be of any size, and somebody else may have written it.
const (
	maxEarlier      = 64 << 20
	maxEarlierFiles = 64
)

// Replace finds the run whose report, and so whose files, this run replaces. It says whose they are, and which of them
// Commit removes, since this run does not write them: none if the report is another user's. note is "" if there is no
// such run.
func (h *Held) Replace() (note string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, own, ok := h.readEarlier()
	if !ok {
		return ""
	}
	if h.stale = (stale{}); own {
		h.stale = e.stale(h.dir, h.out)
	}
	if own || slices.Contains(h.out.Names(), e.report) {
		h.stale.Report = e.report
	}
	title := Report{Name: e.Name, Problem: e.Problem}.Title()
	note = fmt.Sprintf("%s has the files of run %s (%s), which ended on %s: this run replaces them", h.dir,
		show.Text(e.RunID), show.Text(title), e.Ended.Local().Format(time.DateTime))
	if removed := h.stale.String(); removed != "" {
		note += ", and removes " + removed
	}
	return note
}

// readEarlier reads the report that this run replaces. A run without a report replaces that of the default name. own
// says that the report is of this user.
func (h *Held) readEarlier() (e earlier, own, ok bool) {
	e.report = h.out.Report
	if e.report == "" || e.report == configs.Stdout {
		e.report = configs.Default().Output.Report
	}
	f, err := regular.OpenFile(h.final(e.report), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return e, false, false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEarlier))
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	fi, statErr := f.Stat()
	if err != nil || statErr != nil || e.RunID == "" || len(e.Files) > maxEarlierFiles {
		return e, false, false // no report of a run
	}
	e.at = fi.ModTime()
	return e, userOf(fi) == ownerOf(h.path("")).user, true
}

// stale are files of an earlier run that the new one replaces without writing files of their names.
type stale struct {
	Report string   `json:"report,omitempty"` // whether or not the new run writes one
	Files  []string `json:"files,omitempty"`
	// Series is output.field of a series, whose files have numbers up to Last.
	Series string `json:"series,omitempty"`
	Last   int    `json:"last,omitempty"`
	count  int    // of the files of the series
}

// String lists the files.
func (s stale) String() string {
	names := slices.Clone(s.Files)
	if s.count > 0 {
		names = append(names, fmt.Sprintf("%s (%s)", s.output().SeriesFiles(), plural(s.count, "field")))
	}
	return strings.Join(names, ", ")
}

// output returns the configuration of the series.
func (s stale) output() configs.Output {
	return configs.Output{Field: s.Series, Every: configs.Interval{Iterations: 1}}
}

// stale returns the files of e that a run with the files of o does not write, and that are still as e lists them.
func (e earlier) stale(dir string, o configs.Output) (s stale) {
	kept := append(o.Names(), o.Index())
	add := func(f FileReport, listed bool) {
		if !slices.Contains(kept, f.Name) && isOutput(f.Name) && sameFile(filepath.Join(dir, f.Name), f, listed,
			e.at) {
			s.Files = append(s.Files, f.Name)
		}
	}
	for _, f := range e.Files {
		add(f, f.Name != e.report)
	}
	if p := e.Probes; p != nil && p.Samples > 0 {
		add(FileReport{Name: configs.ProbesFile}, false)
	}
	if e.Series == nil {
		return s
	}
	add(FileReport{Name: e.Series.Index}, false)
	if o.Series() && o.SeriesFiles() == e.Series.Files {
		return s
	}
	s.Series, s.Last = strings.Replace(e.Series.Files, "-*", "", 1), e.Series.Sweeps
	if !isOutput(s.Series) || s.output().SeriesFiles() != e.Series.Files {
		s.Series, s.Last = "", 0
	}
	s.count = len(s.series(dir))
	return s
}

// sameFile reports whether the file at path is a run's own and, if it is listed, is as the run left it: it has its size
// and its sum. A large file, which has no sum, was not changed after the report.
func sameFile(path string, f FileReport, listed bool, reported time.Time) bool {
	if fi, err := os.Lstat(path); err != nil || unfit(path) != nil || fi.Mode()&os.ModeSymlink != 0 {
		return false
	}
	if !listed {
		return true
	}
	if isZarr(path) {
		path = filepath.Join(path, ShardFile)
	}
	r, err := regular.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer r.Close()
	fi, err := r.Stat()
	if err != nil || fi.Size() != f.Bytes {
		return false
	}
	if f.SHA256 == "" {
		return !fi.ModTime().After(reported)
	}
	sum := sha256.New()
	_, err = io.Copy(sum, r)
	return err == nil && hex.EncodeToString(sum.Sum(nil)) == f.SHA256
}

// series returns the names of the files of the series.
func (s stale) series(dir string) (names []string) {
	if s.Series == "" {
		return nil
	}
	entries, _ := os.ReadDir(dir) // what cannot be listed is not removed
	for _, entry := range entries {
		n, ok := s.output().InSeries(entry.Name())
		if ok && n <= s.Last && sameFile(filepath.Join(dir, entry.Name()), FileReport{}, false, time.Time{}) {
			names = append(names, entry.Name())
		}
	}
	return names
}

// remove removes the files but for the report. Those that are gone count as removed.
func (o stale) remove(s stage) error {
	for _, name := range append(o.series(s.dir), o.Files...) {
		if unfit(s.final(name)) != nil {
			continue
		}
		if err := s.remove(s.final(name)); err != nil { // a Zarr group is a directory
			return fmt.Errorf("remove a file of the run before: %w", err)
		}
	}
	return nil
}
