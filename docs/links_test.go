// Package docs checks the documents against the tree.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents returns the Markdown files of the tree by name, relative to this directory.
func documents(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			names = append(names, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	return texts
}

var (
	link    = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors returns the names by which links reach the headings of a document.
func anchors(text string) (names []string) {
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		names = append(names, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return names
}

func TestLinksLeadSomewhere(t *testing.T) {
	texts := documents(t)
	for name, text := range texts {
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			target, anchor := l[1], l[2]
			if strings.Contains(target, "://") {
				continue
			}
			path := name
			if target != "" {
				path = strings.TrimPrefix(filepath.Join(filepath.Dir(name), target), "../docs/")
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: link to %s: %v", name, target, err)
			} else if anchor != "" && !slices.Contains(anchors(texts[path]), anchor) {
				t.Errorf("%s: %s has no heading for #%s", name, path, anchor)
			}
		}
	}
}

var (
	source   = regexp.MustCompile("`((?:bench|cmd|configs|cuda|docker|halo|internal|solver)/[a-z0-9_./-]*)`")
	declared = regexp.MustCompile("`([A-Za-z.]+)` (?:in|of) `([a-z0-9_/]+\\.(?:go|cuh?))`")
)

// The documents that say where to find what name files and directories that exist, and names that stand in them.
func TestNamedSourcesExist(t *testing.T) {
	texts := documents(t)
	for _, name := range []string{"architecture.md", "extending.md", "protocols.md", "../CONTRIBUTING.md"} {
		named := source.FindAllStringSubmatch(texts[name], -1)
		if len(named) == 0 {
			t.Errorf("%s names no source", name)
		}
		for _, s := range named {
			if _, err := os.Stat(filepath.Join("..", s[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, d := range declared.FindAllStringSubmatch(texts[name], -1) {
			code, err := os.ReadFile(filepath.Join("..", d[2]))
			if err != nil && strings.Contains(d[2], "/") {
				t.Errorf("%s: %v", name, err)
			}
			word := regexp.MustCompile(`\b` + regexp.QuoteMeta(d[1][strings.LastIndex(d[1], ".")+1:]) + `\b`)
			if err == nil && !word.Match(code) {
				t.Errorf("%s: %s does not name %s", name, d[2], d[1])
			}
		}
	}
}

// The sources that comments, scripts and drawings name are in the tree.
func TestSourcesInCommentsExist(t *testing.T) {
	named := regexp.MustCompile(`[\w$]+\.(?:go|cuh?)\b`)
	kinds := []string{".go", ".cu", ".cuh", ".cpp", ".sh", ".md", ".svg"}
	placeholders := []string{"$module.cu", "sweep_NAME.cu"}
	exist, uses := map[string]bool{}, map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != ".." && name[0] == '.' {
				return fs.SkipDir
			}
			return nil
		}
		exist[name] = true
		ext := filepath.Ext(name)
		if strings.HasSuffix(name, "_test.go") || !slices.Contains(kinds, ext) {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, source := range named.FindAllString(string(text), -1) {
			uses[source] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for source, path := range uses {
		if !exist[source] && !slices.Contains(placeholders, source) {
			t.Errorf("%s names %s, which is not in the tree", path, source)
		}
	}
	if len(uses) < 150 {
		t.Errorf("%d sources are named, want 150 or more", len(uses))
	}
}
