package study

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"jacobi/internal/base/durable"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
)

// Identity is what decides the answers of a study's runs besides their own keys. A file beside the table keeps it.
type Identity struct {
	Keys  map[string]string `json:"keys"`  // that are given to all runs
	Files map[string]string `json:"files"` // SHA-256 of those that the problems read, by path; "" if it is not known
}

// Beside returns the path of the file with the identity of a table's study.
func Beside(table string) string { return table + ".study" }

const (
	maxIdentity = 1 << 30 // bytes; a study of a million runs may name as many files
	// hashKey stands for --hash among the keys.
	hashKey = "--hash"
)

// identity returns that of the study.
func (s *Spec) identity() Identity {
	id := Identity{Keys: s.base.Given(), Files: map[string]string{}}
	if s.hash {
		id.Keys[hashKey] = "true"
	}
	for path, in := range s.files {
		id.Files[path] = in.sum
	}
	return id
}

// replaces returns an error if runs that are done had another identity than the study has now. Values that all these
// runs have replaced by their own do not matter, and neither do files that are gone. Otherwise it returns the identity
// that is to take the place of what was; nil if that is the same.
func (s *Spec) replaces(was Identity, done map[int]bool) (*Identity, error) {
	now := s.identity()
	replaced := map[string]int{}
	for run := range done {
		for name := range s.Runs[run-1] {
			replaced[name]++
		}
	}
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(union(was.Keys, now.Keys))) {
		before, had := was.Keys[name]
		after, has := now.Keys[name]
		if (before != after || had != has) && replaced[name] < len(done) {
			faults = append(faults, show.Text(name)+" was "+value(before, had)+" and is "+value(after, has))
		}
	}
	told := map[string]bool{}
	for _, run := range slices.Sorted(maps.Keys(done)) {
		for _, path := range s.reads(run) {
			switch {
			case s.files[path].info == nil:
				now.Files[path] = was.Files[path]
			case !told[path] && now.Files[path] != was.Files[path]:
				faults = append(faults, fmt.Sprintf("%s has other contents", show.Text(path)))
				told[path] = true
			}
		}
	}
	switch {
	case faults != nil:
		return nil, fmt.Errorf("its runs are of another study: %s", strings.Join(faults, ", "))
	case maps.Equal(was.Keys, now.Keys) && maps.Equal(was.Files, now.Files):
		return nil, nil
	}
	return &now, nil
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		return b
	}
	maps.Copy(all, b)
	return all
}

// value shows the value of a key.
func value(text string, given bool) string {
	if !given {
		return "not given"
	}
	return quoted(text)
}

// quoted returns text of others for a message.
func quoted(text string) string { return `"` + show.Text(text) + `"` }

// readIdentity reads the identity of a table's study.
func readIdentity(table string) (id Identity, err error) {
	name := filepath.Base(Beside(table))
	data, err := regular.ReadFile(Beside(table), maxIdentity)
	if errors.Is(err, fs.ErrNotExist) {
		return id, fmt.Errorf("%s is not beside it, so it is no table of a study", name)
	}
	if err == nil && json.Unmarshal(data, &id) != nil {
		err = fmt.Errorf("%s beside it is not what a study has written", name)
	}
	return id, err
}

// write writes the identity of a table's study.
func (id Identity) write(table string) error {
	data, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return err
	}
	return replace(Beside(table), func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	})
}

// replace gives the file at path the contents that write writes, or leaves it as it is. It keeps the file's mode.
func replace(path string, write func(w io.Writer) error) error {
	dir := filepath.Dir(path)
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithPermissions(0o666),
		renameio.WithExistingPermissions())
	if err == nil {
		defer f.Cleanup() // nothing after the replacement
		err = write(f)
	}
	if err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), reason(err))
	}
	return durable.SyncDir(dir)
}

// reason returns err without the operation and the path of a file.
func reason(err error) error {
	if fault, ok := errors.AsType[*fs.PathError](err); ok {
		return fault.Err
	}
	return err
}
