package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/base/durable"
)

// stage is the directory within output.dir where a run has its files until they are put in place: it is on the same
// file system, and nobody but its user may enter it.
type stage struct {
	dir  string // output.dir
	name string // of the directory in it
	disk
}

// disk changes names.
type disk struct {
	rename func(oldpath, newpath string) error // os.Rename, except in tests
	remove func(path string) error             // os.RemoveAll, except in tests
}

var realDisk = disk{os.Rename, os.RemoveAll}

const (
	stagePrefix = ".jacobi-"
	// replacedDir has the Zarr groups that the run replaces, within its stage.
	replacedDir = "replaced"
)

// newStage makes the directory of a run.
func newStage(dir, runID string) (stage, error) {
	path, err := os.MkdirTemp(dir, stagePrefix+runID+"-") // with mode 0700
	return stage{dir, filepath.Base(path), realDisk}, err
}

// path returns the path of a file while it is staged; with "" that of the directory.
func (s stage) path(name string) string { return filepath.Join(s.dir, s.name, name) }

// final returns the path of a file in place.
func (s stage) final(name string) string { return filepath.Join(s.dir, name) }

// has reports whether a file is staged.
func (s stage) has(name string) bool { return exists(s.path(name)) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// put puts a file in place. One that is not staged counts as in place already.
func (s stage) put(name string) error {
	if !s.has(name) {
		return nil
	}
	if err := checkTarget(s.final(name)); err != nil {
		return err
	}
	if isZarr(name) && exists(s.final(name)) { // no rename replaces a directory that is not empty
		if err := os.MkdirAll(s.path(replacedDir), 0o700); err != nil {
			return err
		}
		if err := s.rename(s.final(name), s.path(replacedDir+"/"+name)); err != nil {
			return err
		}
	}
	return s.rename(s.path(name), s.final(name))
}

// owner is the user whose a directory is, as the file system names the user, and who may enter it.
type owner struct {
	user uint32
	mode fs.FileMode
}

// ownerOf returns the zero owner, which no directory has, if path is no directory.
func ownerOf(path string) (o owner) {
	if fi, err := os.Lstat(path); err == nil && fi.IsDir() {
		o = owner{userOf(fi), fi.Mode()}
	}
	return o
}

func userOf(fi fs.FileInfo) uint32 { return fi.Sys().(*syscall.Stat_t).Uid }

// stagesOf returns the stages in dir that are an owner's, and nobody else's. The lists of others are not obeyed.
func stagesOf(dir string, own owner) (stages []stage, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		s := stage{dir, e.Name(), realDisk}
		if strings.HasPrefix(e.Name(), stagePrefix) && ownerOf(s.path("")) == own {
			stages = append(stages, s)
		}
	}
	return stages, err
}

// size returns the number of staged files and the disk space that they take. The run that has the stage may put files
// in place meanwhile: these do not count.
func (s stage) size() (files int, bytes int64, err error) {
	err = filepath.WalkDir(s.path(""), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && path != s.path(listDraft) {
			var fi fs.FileInfo
			if fi, err = e.Info(); err == nil {
				files, bytes = files+1, bytes+fi.Sys().(*syscall.Stat_t).Blocks*512
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return files, bytes, err
}

// discard removes the stage. A Zarr group that was to be replaced when the run was killed gets its name back.
func (s stage) discard() error {
	entries, err := os.ReadDir(s.path(replacedDir))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, e := range entries {
		if err == nil && !exists(s.final(e.Name())) {
			err = errors.Join(s.rename(s.path(replacedDir+"/"+e.Name()), s.final(e.Name())), durable.SyncDir(s.dir))
		}
	}
	if err != nil {
		return err
	}
	return s.remove(s.path(""))
}

// tidy completes what killed runs of the same user have not put in place, and removes what they have left unfinished.
// The notes say so. No run holds the directory but that of s.
func (s stage) tidy() (notes []string, err error) {
	stages, err := stagesOf(s.dir, ownerOf(s.path("")))
	if err != nil {
		return nil, err
	}
	files, bytes := 0, int64(0)
	for _, left := range stages {
		if left.name == s.name {
			continue
		}
		note, err := left.finish()
		if err != nil {
			return nil, err
		}
		if note != "" {
			notes = append(notes, note)
		} else {
			n, b, err := left.size()
			if err != nil {
				return nil, err
			}
			files, bytes = files+n, bytes+b
		}
		if err := left.discard(); err != nil {
			return nil, err
		}
	}
	if files > 0 {
		notes = append(notes, fmt.Sprintf("%s: removed %s (%s) of runs that were killed", s.dir,
			plural(files, "unfinished file"), bytesOf(bytes)))
	}
	return notes, nil
}

// CheckRoom fails unless the file system of dir has room for this many bytes. The space of unfinished files of killed
// runs counts as free, because Hold removes them.
func CheckRoom(dir string, bytes int64) error {
	stages, err := stagesOf(dir, owner{uint32(os.Geteuid()), fs.ModeDir | 0o700})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	killed := dirlock.Check(dir) == nil
	for _, s := range stages {
		if killed && !s.has(listFile) {
			_, left, err := s.size()
			if err != nil {
				return err
			}
			bytes -= left
		}
	}
	return checkSpace(dir, bytes)
}

// putIndex puts the list of the series in place.
func (h *Held) putIndex() error {
	series, err := h.series()
	if err != nil {
		return err
	}
	name := h.out.Index()
	f, err := h.Create(name, 0)
	if err == nil {
		err = write(f, collection(h.out, series))
	}
	if err == nil {
		err = h.put(name)
	}
	return err
}

// TrimSeries implements Place. Only the first call removes files, so that none of this run's is lost to a repetition.
func (h *Held) TrimSeries(sweeps int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trimmed {
		return nil
	}
	h.trimmed = true
	series, err := h.series()
	if err == nil && h.out.Index() != "" {
		if err = os.Remove(h.final(h.out.Index())); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	for _, n := range series {
		if n > sweeps && err == nil {
			path := h.final(h.out.SeriesFile(n))
			if err = checkTarget(path); err == nil {
				err = os.RemoveAll(path) // a Zarr group is a directory
			}
		}
	}
	if err != nil {
		return fmt.Errorf("remove the series of an earlier run: %w", err)
	}
	return nil
}

// series returns the numbers of sweeps of the files of the series that are in place, in ascending order.
func (h *Held) series() (sweeps []int, err error) {
	entries, err := os.ReadDir(h.dir)
	for _, e := range entries {
		if n, ok := h.out.InSeries(e.Name()); ok && (e.Type().IsRegular() || e.IsDir() && isZarr(e.Name())) {
			sweeps = append(sweeps, n)
		}
	}
	slices.Sort(sweeps)
	return sweeps, err
}

// collection returns the list of a series for ParaView, in VTK's XML format for collections (ParaView's wiki, "PVD File
// Format"). The time of a field is its number of sweeps.
func collection(o configs.Output, sweeps []int) []byte {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n  <Collection>\n")
	for _, n := range sweeps {
		fmt.Fprintf(&b, "    <DataSet timestep=\"%d\" part=\"0\" file=\"%s\"/>\n", n, escapeXML(o.SeriesFile(n)))
	}
	b.WriteString("  </Collection>\n</VTKFile>\n")
	return []byte(b.String())
}

func escapeXML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}
