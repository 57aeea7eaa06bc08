package output

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Loosen makes h the directory of a study. Its runs put files of any name in place, each run when it ends and one file
// after the other. None of that is synced to disk: a run whose files are lost is done again.
func (h *Held) Loosen() { h.loose = true }

// IsLoose reports whether Loosen was called.
func (h *Held) IsLoose() bool { return h.loose }

// commitLoose gives files of a study their final names.
func (h *Held) commitLoose(files []string) error {
	for _, file := range files {
		name, err := NameOfPartial(file, h.runID)
		if err != nil {
			return err
		}
		to := filepath.Join(string(h.Dir), name)
		if err := checkTarget(to); err != nil {
			return err
		}
		err = os.Rename(filepath.Join(string(h.Dir), file), to)
		if err != nil && !os.IsNotExist(err) { // a repetition of the call has renamed it
			return err
		}
	}
	return nil
}

// Numbered returns the name of a file of one of many runs: field-7.npy for field.npy.
func Numbered(name string, run int) string {
	if name == "" {
		return ""
	}
	ext := filepath.Ext(name)
	return strings.TrimSuffix(name, ext) + "-" + strconv.Itoa(run) + ext
}

// looseExtensions are those of files that runs of a study may write.
var looseExtensions = []string{".npy", ".vti", ".png", ".jpg", ".jpeg", ".csv", ".json"}

// IsLooseName reports whether a run of a study may write a file of this name.
func IsLooseName(name string) bool {
	return checkName(name) == nil && !strings.HasPrefix(name, ".") &&
		slices.Contains(looseExtensions, strings.ToLower(filepath.Ext(name)))
}
