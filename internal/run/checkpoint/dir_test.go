package checkpoint

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The leftovers of a killed run are removed, and a set of an earlier start with the same run id is replaced.
func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".sweep-1-x.unsealed", ".sweep-2-x.removed"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "sub"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		c := newCrew(t, 2, 1, false)
		c.save(c.savers(NewDir(dir), 2), 10)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != setName(10, t.Name()) {
		t.Errorf("%v, %v", entries, err)
	}
	found, faults, err := List(t.Context(), NewDir(dir), "")
	if err != nil || len(faults) > 0 || found[0].Serial != 2 {
		t.Errorf("%+v, %v, %v; want serial 2", found, faults, err)
	}
}

// Another user of a shared directory may have put something else where a file is to be written.
func TestWriteToNothingButARegularFile(t *testing.T) {
	dir := t.TempDir()
	unsealed := NewDir(dir).unsealed("set")
	if err := os.Mkdir(unsealed, 0o700); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(dir, "precious")
	err := errors.Join(syscall.Mkfifo(filepath.Join(unsealed, "part-00000"), 0o600),
		os.WriteFile(precious, []byte("precious"), 0o600), os.Symlink(precious, filepath.Join(unsealed, "part-00001")))
	if err != nil {
		t.Fatal(err)
	}
	for file, kind := range map[string]string{"part-00000": "a named pipe", "part-00001": "a symbolic link"} {
		err := NewDir(dir).Write(t.Context(), "set", file, 1, func(io.Writer) error { t.Error("written"); return nil })
		want := "open " + filepath.Join(unsealed, file) + ": " + kind + ", not a regular file"
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if b, err := os.ReadFile(precious); err != nil || string(b) != "precious" {
		t.Errorf("behind the link: %q, %v", b, err)
	}
}
