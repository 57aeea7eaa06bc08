package study

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"jacobi/configs"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
)

const (
	maxRuns     = 1_000_000 // of a study
	maxLine     = 1 << 20   // bytes of a document
	maxRunsFile = 1 << 30   // bytes of a file of documents
)

// Keys are the keys of a run, as in a run file.
type Keys map[string]any

// Names returns the names of the keys of runs, in the order in which they first come.
func Names(order []string, runs []Keys) []string {
	names := slices.Clone(order)
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for _, run := range runs {
		for _, name := range slices.Sorted(maps.Keys(run)) {
			if !known[name] {
				known[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// Vary returns the product of lists, each as in grid.nx=129,257: the last one varies fastest. A comma within
// parentheses does not divide a list. It also returns the names of the keys.
func Vary(lists []string) (runs []Keys, names []string, err error) {
	runs = []Keys{{}}
	for _, list := range lists {
		name, values, ok := strings.Cut(list, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if !ok || name == "" {
			return nil, nil, fmt.Errorf("--vary %s: must be a key and its values, as in grid.nx=129,257", list)
		}
		if slices.Contains(names, name) {
			return nil, nil, fmt.Errorf("--vary %s: the key is given twice", name)
		}
		names = append(names, name)
		each := divide(values)
		if len(runs)*len(each) > maxRuns {
			return nil, nil, fmt.Errorf("--vary %s: more than %d runs", name, maxRuns)
		}
		var next []Keys
		for _, run := range runs {
			for _, value := range each {
				more := maps.Clone(run)
				more[name] = value
				next = append(next, more)
			}
		}
		runs = next
	}
	return runs, names, nil
}

// divide divides a list at the commas that no parentheses enclose.
func divide(list string) (values []string) {
	depth, begin := 0, 0
	for i, c := range list {
		switch c {
		case '(':
			depth++
		case ')':
			depth = max(0, depth-1)
		case ',':
			if depth == 0 {
				values = append(values, strings.TrimSpace(list[begin:i]))
				begin = i + 1
			}
		}
	}
	return append(values, strings.TrimSpace(list[begin:]))
}

// ReadRuns reads a file of runs: a line of JSON for each, an object of keys, as in {"grid.nx": 129}, or of sections.
func ReadRuns(path string) (runs []Keys, err error) {
	f, err := regular.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("--runs: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > maxRunsFile {
		return nil, errors.Join(fmt.Errorf("--runs %s: more than %d bytes", path, maxRunsFile), err)
	}
	lines := bufio.NewScanner(io.LimitReader(f, maxRunsFile))
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		tree, err := configs.DecodeLine(lines.Bytes())
		var run Keys
		if err == nil {
			run, err = KeysOf(tree)
		}
		if err != nil {
			return nil, fmt.Errorf("--runs %s, line %d: %w", path, n, err)
		}
		if runs = append(runs, run); len(runs) > maxRuns {
			return nil, fmt.Errorf("--runs %s: more than %d runs", path, maxRuns)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("--runs %s, line %d: more than %d bytes", path, n, maxLine)
	} else if err != nil {
		return nil, fmt.Errorf("--runs %s: %w", path, err)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("--runs %s: the file has no run", path)
	}
	return runs, nil
}

// KeysOf returns the keys of a run that a JSON object has.
func KeysOf(tree map[string]any) (Keys, error) {
	keys := Keys{}
	return keys, keys.add("", tree)
}

// add adds the leaves of tree.
func (k Keys) add(prefix string, tree map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		value, full := tree[name], prefix+strings.ToLower(name)
		sub, isSection := value.(map[string]any)
		if isSection && full != "problem.colours" {
			if err := k.add(full+".", sub); err != nil {
				return err
			}
			continue
		}
		if _, twice := k[full]; twice {
			return fmt.Errorf("%s: given twice", show.Text(full))
		}
		k[full] = whole(value)
	}
	return nil
}

// whole returns a value of JSON, a whole number as an integer.
func whole(value any) any {
	if f, ok := value.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int(f)
	}
	return value
}

// Product returns every run of a with the keys of every run of b.
func Product(a, b []Keys) (runs []Keys, err error) {
	if len(a)*len(b) > maxRuns {
		return nil, fmt.Errorf("--vary and --runs: more than %d runs", maxRuns)
	}
	for _, first := range a {
		for _, second := range b {
			both := maps.Clone(first)
			for name, value := range second {
				if _, twice := both[name]; twice {
					return nil, fmt.Errorf("%s: both --vary and --runs give it", name)
				}
				both[name] = value
			}
			runs = append(runs, both)
		}
	}
	return runs, nil
}
