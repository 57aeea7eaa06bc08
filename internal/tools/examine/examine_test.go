package examine

import (
	"os"
	"path/filepath"
	"testing"
)

// Undo removes new directories, but neither earlier ones nor those that are not empty.
func TestUndo(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ there, use, left string }{
		{"", "", ""},
		{"a/b", "", "a/b"},
		{"a", "", "a"},
		{"", "a/file", "a/file"},
	} {
		root, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, "a", "b")
		if err := os.MkdirAll(filepath.Join(root, c.there), 0o777); err != nil {
			t.Fatal(err)
		}
		undo := Undo(path)
		if err := os.MkdirAll(path, 0o777); err != nil {
			t.Fatal(err)
		}
		if c.use != "" {
			if err := os.WriteFile(filepath.Join(root, c.use), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		undo()
		if _, err := os.Stat(filepath.Join(root, c.left)); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if _, err := os.Stat(path); (err == nil) != (c.left == "a/b") {
			t.Errorf("%+v: %s: %v", c, path, err)
		}
	}
}
