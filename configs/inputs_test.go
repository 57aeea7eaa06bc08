package configs

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// A file that a run file names lies beside it, or in the working directory. Other sources mean the working directory.
func TestFilesBesideTheRunFile(t *testing.T) {
	top := t.TempDir()
	t.Chdir(top)
	if err := os.Mkdir("cases", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cases/both.npy", "both.npy", "cases/beside.PNG", "here.npy", "cases/secret",
		"cases/sin(x)"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ file, key, value, set, want, where string }{
		{"cases/a.yaml", "problem.source", "both.npy", "", "cases/both.npy", "beside"},
		{top + "/cases/a.yaml", "problem.source", "both.npy", "", top + "/cases/both.npy", "beside"},
		{"cases/a.yaml", "problem.fixed", "beside.PNG", "", "cases/beside.PNG", "beside"},
		{"cases/a.yaml", "problem.initial", "here.npy", "", "here.npy", "here"},
		{"cases/a.yaml", "problem.initial", top + "/here.npy", "", top + "/here.npy", "here"},
		{"cases/a.yaml", "problem.initial", "none.npy", "", "none.npy", "here"},
		{"cases/a.yaml", "problem.source", "sin(x)", "", "sin(x)", ""},
		{"cases/a.yaml", "problem.top", "both.npy", "", "cases/both.npy", "beside"},
		{"cases/a.yaml", "problem.source", "both.npy", "both.npy", "both.npy", "here"},
		{"cases/a.yaml", "nats.secret_file", "secret", "", "cases/secret", ""},
		{"cases/a.yaml", "output.field", "both.npy", "", "both.npy", ""},
		{"a.yaml", "problem.source", "both.npy", "", "both.npy", "here"},
	} {
		section, leaf, _ := strings.Cut(c.key, ".")
		if err := os.WriteFile(c.file, []byte(section+": {"+leaf+": "+c.value+"}"), 0o600); err != nil {
			t.Fatal(err)
		}
		o := Options{File: c.file}
		if c.set != "" {
			o.Set = []string{c.key + "=" + c.set}
		}
		cfg, err := Load(o)
		if err != nil {
			t.Fatal(err)
		}
		list := keys()
		got := list[slices.IndexFunc(list, func(k key) bool { return k.name == c.key })].text(cfg)
		where := ""
		for _, input := range cfg.Inputs() {
			if where = "here"; input.ByRunFile {
				where = "beside"
			}
		}
		if got != c.want || where != c.where {
			t.Errorf("%s, %s: %s, --set %q: %q, %q; want %q, %q", c.file, c.key, c.value, c.set, got, where, c.want,
				c.where)
		}
	}
}

// An error about a file that is missing says where it was looked for.
func TestMissing(t *testing.T) {
	p := Problem{Dir: "cases"}
	if err := p.Missing(fs.ErrPermission); err != fs.ErrPermission {
		t.Error(err)
	}
	const want = `file does not exist; names in the file were looked for in "cases", too`
	if err := p.Missing(fs.ErrNotExist); err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
