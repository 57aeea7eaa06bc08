package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/base/regular"
)

// Held is output.dir while one run has exclusive use of it. Only the process that holds it gives files their final
// names: the launcher, or rank 0 if there is no launcher. That process therefore knows which run the files belong to
// even if ranks die.
type Held struct {
	Dir
	runID   string
	lock    *dirlock.Lock
	journal Partial
	loose   bool // see Loosen

	mu        sync.Mutex
	committed []string // partial files; nil before Commit
	stale     stale    // what Commit removes; see Replace
	trimmed   bool     // see TrimSeries
}

// Hold locks dir, which must exist, for a run. If an earlier run was killed during its commit, Hold first completes the
// commit. It then removes the partial files of killed runs. The notes report both. Close unlocks the directory.
func Hold(dir, runID string) (h *Held, notes []string, err error) {
	fail := func(err error) (*Held, []string, error) {
		if !errors.Is(err, ErrNoSpace) { // which names the key
			err = fmt.Errorf("output.dir %q: %w", dir, err)
		}
		return nil, nil, err
	}
	h = &Held{Dir: Dir(dir), runID: runID}
	if h.lock, err = dirlock.Take(dir, runID); err != nil {
		return fail(err)
	}
	finished, err := finishCommit(dir)
	if err != nil {
		return fail(errors.Join(err, h.lock.Release()))
	}
	removed, err := removeLeftovers(dir)
	if err != nil {
		return fail(errors.Join(err, h.lock.Release()))
	}
	if h.journal, err = h.Create(journalName, runID, journalRoom); err != nil {
		return fail(errors.Join(err, h.lock.Release()))
	}
	return h, slices.DeleteFunc([]string{finished, removed}, func(s string) bool { return s == "" }), nil
}

// Commit implements Place. Either all files get their names or none. Then it removes the files of the run before that
// this run replaces without writing files of their names. Only a disk fault or another process that changes
// the directory can leave some of them renamed; the error then says which. The file configs.Stdout stays for CopyTo.
func (h *Held) Commit(files []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.loose {
		return h.commitLoose(files)
	}
	if h.committed != nil {
		if slices.Equal(h.committed, files) {
			return nil
		}
		return errors.New("the outputs of this run are in place already")
	}
	j := journal{Run: h.runID, Stale: h.stale}
	for _, file := range files {
		name, err := NameOfPartial(file, h.runID)
		if err != nil {
			return err
		}
		if name != configs.Stdout {
			j.Files = append(j.Files, file)
		}
	}
	if err := j.commit(string(h.Dir), h.journal); err != nil {
		return fmt.Errorf("put the outputs in place: %w", err)
	}
	h.committed = slices.Clone(files)
	return nil
}

// Committed returns the final names of the committed files.
func (h *Held) Committed() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, file := range h.committed {
		if name, err := NameOfPartial(file, h.runID); err == nil && name != configs.Stdout {
			names = append(names, name)
		}
	}
	return names
}

// CopyTo writes to w the file that Commit was given for standard output, if any.
func (h *Held) CopyTo(w io.Writer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, file := range h.committed {
		if name, err := NameOfPartial(file, h.runID); err != nil || name != configs.Stdout {
			continue
		}
		if err := copyFile(w, filepath.Join(string(h.Dir), file)); err != nil {
			return fmt.Errorf("write standard output: %w", err)
		}
	}
	return nil
}

func copyFile(w io.Writer, path string) error {
	f, err := regular.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// Close removes the files that the run has not committed and unlocks the directory.
func (h *Held) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.journal.Close() // removeLeftovers removes the file
	_, err := removeLeftovers(string(h.Dir))
	if err := errors.Join(err, h.lock.Release()); err != nil {
		return fmt.Errorf("output.dir %q: %w", string(h.Dir), err)
	}
	return nil
}

// Leftovers returns the partial files in dir and the disk space that they take. If no run holds dir, killed runs have
// left them.
func Leftovers(dir string) (names []string, bytes int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		if !isPartial(e.Name()) {
			continue
		}
		fi, err := e.Info()
		group := err == nil && fi.IsDir() && strings.Contains(strings.ToLower(e.Name()), Zarr+".")
		if group {
			fi, err = os.Stat(filepath.Join(dir, e.Name(), ShardFile))
			if errors.Is(err, fs.ErrNotExist) { // not yet moved into it
				fi, err = e.Info()
			}
		}
		if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.Mode().IsRegular() && !group {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		names = append(names, e.Name())
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			bytes += st.Blocks * 512
		}
	}
	return names, bytes, nil
}

// CheckRoom fails unless the file system of dir has room for this many bytes. The space of leftovers counts as free,
// because Hold removes them.
func CheckRoom(dir string, bytes int64) error {
	_, left, err := Leftovers(dir)
	if err == nil {
		err = CheckSpace(dir, bytes-left)
	}
	return err
}

// isPartial reports whether NewPartialName, swapGroup or CheckDir makes files of this name.
func isPartial(file string) bool {
	if strings.HasPrefix(file, probePrefix) && strings.HasSuffix(file, partialSuffix) {
		return true
	}
	parts := strings.Split(file, ".")
	n := len(parts) // "", the name, which may contain dots, the run, the nonce and the suffix
	return n >= 5 && parts[0] == "" && len(parts[n-2]) == nonceLength &&
		("."+parts[n-1] == partialSuffix || "."+parts[n-1] == movedSuffix)
}

func removeLeftovers(dir string) (note string, err error) {
	if err := giveBack(dir); err != nil {
		return "", err
	}
	names, bytes, err := Leftovers(dir)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s: removed %s (%s) of runs that were killed", dir, plural(len(names), "unfinished file"),
		bytesOf(bytes)), nil
}
