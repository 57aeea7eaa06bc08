package output

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jacobi/configs"
)

func TestCheckDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := CheckDir(dir); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// These fail for root, too: a directory below a file, and one in /proc.
	for bad, why := range map[string]string{file: "not a directory", filepath.Join(file, "x"): "not a directory",
		"/proc/self": ""} {
		err := CheckDir(bad)
		if err == nil || !strings.HasPrefix(err.Error(), `output.dir "`+bad+`": cannot be`) ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("CheckDir(%q): %v", bad, err)
		}
	}
}

func TestCheckNames(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	good := configs.Output{Dir: dir, Field: "field.npy", History: "history.csv", Report: "report.json"}
	if err := CheckNames(good); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"../field.npy": "output.picture: ", "..": "output.picture: ", "a/b": "output.picture: ",
		"taken": "no regular file",
	} {
		o := good
		o.Picture = name
		if err := CheckNames(o); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("output.picture %q: %v, want %q", name, err, want)
		}
	}
}
