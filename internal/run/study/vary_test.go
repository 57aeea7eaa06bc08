package study

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The last list varies fastest, and commas within parentheses do not divide.
func TestVary(t *testing.T) {
	t.Parallel()
	runs, names, err := Vary([]string{"Grid.NX=9,17", "problem.top=max(x, y) , 2"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Keys{{"grid.nx": "9", "problem.top": "max(x, y)"}, {"grid.nx": "9", "problem.top": "2"},
		{"grid.nx": "17", "problem.top": "max(x, y)"}, {"grid.nx": "17", "problem.top": "2"}}
	if !reflect.DeepEqual(runs, want) || fmt.Sprint(names) != "[grid.nx problem.top]" {
		t.Errorf("%v of %v, want %v", runs, names, want)
	}
	for lists, want := range map[[2]string]string{
		{"grid.nx", "a=1"}:         "--vary grid.nx: must be a key and its values, as in grid.nx=129,257",
		{"grid.nx=1", "grid.nx=2"}: "--vary grid.nx: the key is given twice",
	} {
		if _, _, err := Vary(lists[:]); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", lists, err, want)
		}
	}
}

// A file of runs has an object on each line, of keys or of sections.
func TestReadRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	for text, want := range map[string]string{
		"{\"grid.nx\": 9, \"problem\": {\"TOP\": \"x\"}}\n\n{\"grid\": {\"nx\": 1.5}}": "",
		"{}\n [1]":          "line 2: must be an object with keys",
		"{\"a\": \"\xff\"}": "line 1: column 8: byte 0xff; must be text in UTF-8",
		"{\"a\": 1}\n{\"b\": \"" + strings.Repeat("x", 1<<20) + "\"}": "line 2: more than 1048576 bytes",
		"{\"grid.nx\": 9, \"grid\": {\"nx\": 9}}":                     "line 1: grid.nx: given twice",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		runs, err := ReadRuns(path)
		if want != "" {
			if err == nil || err.Error() != "--runs "+path+", "+want {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
			continue
		}
		if all := []Keys{{"grid.nx": 9, "problem.top": "x"}, {"grid.nx": 1.5}}; err != nil || !reflect.DeepEqual(runs,
			all) {
			t.Errorf("%q: %v, %v; want %v", text, runs, err, all)
		}
	}
}

// No run of a file that is too large is left out without a word.
func TestReadRunsOfLargeFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<30+1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRuns(path); err == nil || err.Error() != "--runs "+path+": more than 1073741824 bytes" {
		t.Error(err)
	}
}

// Both kinds of runs give all combinations, and no key twice.
func TestProduct(t *testing.T) {
	t.Parallel()
	runs, err := Product([]Keys{{"a": 1}, {"a": 2}}, []Keys{{"b": 3}, {"b": 4}})
	if want := []Keys{{"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4}}; err != nil ||
		!reflect.DeepEqual(runs, want) {
		t.Errorf("%v, %v; want %v", runs, err, want)
	}
	if _, err := Product([]Keys{{"a": 1}}, []Keys{{"a": 1}}); err == nil ||
		err.Error() != "a: both --vary and --runs give it" {
		t.Errorf("a key of both: %v", err)
	}
}
