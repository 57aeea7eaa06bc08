package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"jacobi/internal/base/durable"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
)

// journal lists the files of a run that get their final names. It is on disk, in journalFile, from before the first
// rename until after the last one, so that the next run can complete the renames after a crash.
type journal struct {
	Run   string   `json:"run"`
	Files []string `json:"files"` // partial files, complete and durable
	// Inodes are those of the files that become Zarr groups. They tell whether a group is in place already.
	Inodes map[string]uint64 `json:"inodes,omitempty"`
	// Stale are the files of the run before that go once all of Files are in place.
	Stale stale `json:"stale,omitzero"`
}

const (
	journalName = "commit"
	journalFile = ".jacobi-commit"
	// journalRoom is enough for the names of two runs, eight each, in JSON, where a character takes up to six bytes.
	journalRoom = 16 << 10
)

// commit gives the files their final names. p is the partial file reserved for the journal.
func (j journal) commit(dir string, p Partial) error {
	if err := j.check(dir); err != nil {
		return err
	}
	for _, file := range j.Files {
		if name, err := NameOfPartial(file, j.Run); err == nil && isZarr(name) {
			j.Inodes = map[string]uint64{file: inodeOf(filepath.Join(dir, file))}
		}
	}
	b, err := json.Marshal(j)
	if err == nil {
		err = finish(p, b)
	}
	path := filepath.Join(dir, journalFile)
	if err == nil {
		err = os.Rename(filepath.Join(dir, p.File()), path)
	}
	if err == nil {
		err = durable.SyncDir(dir)
	}
	if err != nil {
		return err
	}
	if err := rename(dir, j.Files, j.Run, j.Inodes); err != nil {
		return errors.Join(fmt.Errorf("%w; %s", err, j.state(dir)), os.Remove(path))
	}
	return errors.Join(j.Stale.remove(dir), os.Remove(path))
}

// check fails if a file is missing, or if its final name belongs to something that a run does not replace.
func (j journal) check(dir string) error {
	for _, file := range j.Files {
		name, err := NameOfPartial(file, j.Run)
		if err != nil {
			return err
		}
		if _, err := os.Lstat(filepath.Join(dir, file)); err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		if err := unfit(path); err != nil {
			return fmt.Errorf("%s now %w", path, err)
		}
	}
	return nil
}

// state says which files have their final names and which do not.
func (j journal) state(dir string) string {
	var done, open []string
	for _, file := range j.Files {
		name, err := NameOfPartial(file, j.Run)
		if err != nil {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, file)); errors.Is(err, fs.ErrNotExist) {
			done = append(done, name)
		} else {
			open = append(open, name)
		}
	}
	has := strings.Join(done, ", ")
	if has == "" {
		has = "none of the files"
	}
	text := fmt.Sprintf("%s has %s of run %s", dir, has, show.Text(j.Run))
	if len(open) > 0 {
		text += ", and is without its " + strings.Join(open, ", ")
	}
	return text
}

// finishCommit completes the commit of a killed run, if there is one, and describes it in note.
func finishCommit(dir string) (note string, err error) {
	path := filepath.Join(dir, journalFile)
	b, err := regular.ReadFile(path, journalRoom)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var j journal
	if err := json.Unmarshal(b, &j); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	note = "a run was killed while it put its outputs in place; that is done now: "
	err = rename(dir, j.Files, j.Run, j.Inodes)
	if err == nil {
		err = j.Stale.remove(dir)
	}
	if err != nil {
		note = fmt.Sprintf("a run was killed while it put its outputs in place, and the rest cannot be: %v: ", err)
	}
	return note + j.state(dir), os.Remove(path)
}
