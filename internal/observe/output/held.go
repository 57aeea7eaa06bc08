package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/base/durable"
	"jacobi/internal/base/regular"
)

// Held is output.dir while one run has exclusive use of it. Only the process that holds it puts files in place: the
// launcher, or rank 0 if there is no launcher. That process therefore knows which run the files belong to even if ranks
// die. It implements Place.
type Held struct {
	stage
	out   configs.Output
	runID string
	lock  *dirlock.Lock
	draft File // reserved for the list
	// OfStudy says that h is the directory of a study. Its runs put files of any name in place, each run when it ends
	// and one file after the other. None of that is synced to disk: a run whose files are lost is done again.
	OfStudy bool

	mu      sync.Mutex
	names   []string // given to Commit; nil before
	fault   error    // of Commit
	stale   stale    // what Commit removes; see Replace
	trimmed bool     // see TrimSeries
}

// Hold locks output.dir, which must exist, for a run. If an earlier run was killed while it put its files in place,
// Hold first completes that. It then removes the unfinished files of killed runs. The notes report both. Close unlocks
// the directory.
func Hold(o configs.Output, runID string) (h *Held, notes []string, err error) {
	h = &Held{out: o, runID: runID}
	if h.lock, err = dirlock.Take(o.Dir, runID); err == nil {
		if notes, err = h.begin(); err != nil {
			err = errors.Join(err, h.lock.Release())
		}
	}
	if err != nil {
		if !errors.Is(err, ErrNoSpace) { // which names the key
			err = fmt.Errorf("output.dir %q: %w", o.Dir, err)
		}
		return nil, nil, err
	}
	return h, notes, nil
}

// begin makes the stage.
func (h *Held) begin() (notes []string, err error) {
	if h.stage, err = newStage(h.out.Dir, h.runID); err != nil {
		return nil, err
	}
	if notes, err = h.tidy(); err == nil {
		h.draft, err = createLocal(h.dir, h.path(listDraft), listRoom, false)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(h.path("")))
	}
	return notes, nil
}

// Stage returns the name of the directory within output.dir where files are staged. It cannot be guessed.
func (h *Held) Stage() string { return h.name }

// check refuses a file that the run does not write.
func (h *Held) check(name string) error {
	whole, part, ofGroup := strings.Cut(name, "/")
	_, numbered := h.out.InSeries(whole)
	known := numbered || h.OfStudy && IsStudyName(whole) || whole == h.out.Index() && whole != "" ||
		slices.Contains(h.out.Names(), whole)
	if !known || ofGroup && !(isZarr(whole) && isPart(part)) || checkName(whole) != nil {
		return fmt.Errorf("%q is no file of this run", name)
	}
	return nil
}

// Create implements Place.
func (h *Held) Create(name string, size int64) (File, error) {
	if err := h.check(name); err != nil {
		return nil, err
	}
	return createLocal(h.dir, h.path(name), size, h.OfStudy)
}

// Open implements Place.
func (h *Held) Open(name string) (f File, way string, err error) {
	if err := h.check(name); err != nil {
		return nil, "", err
	}
	f, err = OpenStaged(h.path(""), name, h.OfStudy)
	return f, WroteFile, err
}

// Remove implements Place.
func (h *Held) Remove(name string) error {
	if err := h.check(name); err != nil {
		return err
	}
	return os.RemoveAll(h.path(name)) // a Zarr group is a directory
}

// Put implements Place.
func (h *Held) Put(name string) error {
	err := h.check(name)
	if err == nil && !h.has(name) && !exists(h.final(name)) {
		err = errors.New("there is no such file")
	}
	if err == nil {
		err = h.put(name)
	}
	if err == nil && !h.OfStudy {
		err = durable.SyncDir(h.dir)
	}
	if _, ok := h.out.InSeries(name); ok && err == nil && h.out.Index() != "" {
		err = h.putIndex()
	}
	if err != nil {
		return fmt.Errorf("put %s in place: %w", name, err)
	}
	return nil
}

// Commit implements Place. Then it removes the files of the run before that this run replaces without writing files of
// their names. None of the files gets its name if one of them cannot. After an input/output error some of them may have
// theirs: the error says which, and the next run completes it. The file configs.Stdout stays for CopyTo.
func (h *Held) Commit(names []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names != nil {
		if slices.Equal(h.names, names) {
			return h.fault
		}
		return errors.New("the outputs of this run are in place already")
	}
	l := list{Run: h.runID, Stale: h.stale}
	for _, name := range names {
		if err := h.check(name); err != nil {
			return err
		}
		if name != configs.Stdout {
			l.Files = append(l.Files, name)
		}
	}
	h.names = slices.Clone(names)
	err := l.write(h.stage, h.draft)
	if err != nil {
		err = fmt.Errorf("%w; they lie in %s until the next run in %s", err, h.path(""), h.dir)
	} else if err = l.carryOut(h.stage); err != nil {
		err = fmt.Errorf("%w. The next run in %s completes that", err, h.dir)
	}
	if err != nil {
		h.fault = fmt.Errorf("put the outputs in place: %w", err)
	}
	return h.fault
}

// Committed returns the names of the files that Commit has put in place, and its error.
func (h *Held) Committed() (names []string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fault != nil {
		return nil, h.fault
	}
	return slices.DeleteFunc(slices.Clone(h.names), func(name string) bool { return name == configs.Stdout }), nil
}

// CopyTo writes to w the file that Commit was given for standard output, if any.
func (h *Held) CopyTo(w io.Writer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.names, configs.Stdout) {
		return nil
	}
	f, err := regular.OpenFile(h.path(configs.Stdout), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err == nil {
		_, err = io.Copy(w, f)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write standard output: %w", err)
	}
	return nil
}

// Close removes the files that the run has not put in place, unless Commit has failed, and unlocks the directory.
func (h *Held) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.draft.Close() // it may be closed
	var err error
	if h.fault == nil {
		err = h.discard()
	}
	if err := errors.Join(err, h.lock.Release()); err != nil {
		return fmt.Errorf("output.dir %q: %w", h.dir, err)
	}
	return nil
}

// otherExtensions are those of the files that runs write beside fields.
var otherExtensions = []string{".pvd", ".png", ".jpg", ".jpeg", ".csv", ".json"}

// isOutput reports whether a run may write a file of this name.
func isOutput(name string) bool {
	ending := strings.ToLower(filepath.Ext(name))
	return checkName(name) == nil &&
		(slices.Contains(otherExtensions, ending) || slices.Contains(configs.FieldEndings(), ending))
}

// IsStudyName reports whether a run of a study may write a file of this name.
func IsStudyName(name string) bool {
	return isOutput(name) && !strings.HasPrefix(name, ".") &&
		!slices.Contains([]string{".zarr", ".pvd"}, strings.ToLower(filepath.Ext(name)))
}

// Numbered returns the name of a file of one of many runs: field-7.npy for field.npy.
func Numbered(name string, run int) string {
	if name == "" {
		return ""
	}
	ext := filepath.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), run, ext)
}
