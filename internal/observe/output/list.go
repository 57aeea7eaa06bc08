package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

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
