package problem

import (
	"path/filepath"
	"testing"

	"jacobi/configs"
)

// Every run file in configs is one that a run accepts.
func TestExamples(t *testing.T) {
	t.Chdir("../../..") // the files that they name are relative to it
	var files []string
	for _, pattern := range []string{"*.yaml", "*.json", "*.toml"} {
		list, err := filepath.Glob(filepath.Join("configs", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	if len(files) < 8 {
		t.Errorf("run files %v", files)
	}
	for _, file := range files {
		c, err := configs.Load(configs.Options{File: file})
		if err == nil {
			err = configs.Validate(c)
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		p := open(t, c)
		if err := p.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if w := p.Warnings(t.Context()); w != nil {
			t.Errorf("%s: %q", file, w)
		}
	}
}
