package study

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jacobi/configs"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
	"jacobi/internal/observe/output"
)

// From tells which keys of a run come from a file: inputs that they name may lie beside it.
type From struct {
	File string   // "" for none
	But  []string // keys that do not
}

// file returns the file that a key comes from; "" for none.
func (f From) file(key string) string {
	if slices.Contains(f.But, key) {
		return ""
	}
	return f.File
}

// Spec says which runs a study has.
type Spec struct {
	base  *configs.Base
	Runs  []Keys
	from  From
	hash  bool
	files map[string]input // that the problems read, by path
}

// input is a file as it was when the study began.
type input struct {
	sum  string      // SHA-256; "" if the file could not be read
	info os.FileInfo // nil if the file could not be opened
}

// NewSpec returns the study of runs that differ from base. hash says that each run has the SHA-256 of its field. It
// reads all files that the problems read.
func NewSpec(ctx context.Context, base *configs.Base, runs []Keys, from From, hash bool) (*Spec, error) {
	s := &Spec{base, runs, from, hash, map[string]input{}}
	for run := range runs {
		for _, path := range s.reads(run + 1) {
			if _, known := s.files[path]; known {
				continue
			}
			in, err := look(ctx, path)
			if err != nil {
				return nil, err
			}
			s.files[path] = in
		}
	}
	return s, nil
}

// reads returns the paths of the files that a run reads.
func (s *Spec) reads(run int) []string { return s.base.Reads(s.Runs[run-1], s.from.file) }

// look reads a file. It fails only if ctx ends: what is wrong with a file says the run that reads it.
func look(ctx context.Context, path string) (in input, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return input{}, nil
	}
	defer f.Close()
	if in.info, err = f.Stat(); err != nil {
		return input{}, nil
	}
	sum, buf := sha256.New(), make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return input{}, context.Cause(ctx)
		}
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		switch {
		case errors.Is(err, io.EOF):
			in.sum = hex.EncodeToString(sum.Sum(nil))
			return in, nil
		case err != nil:
			return in, nil
		}
	}
}

// Job returns the job of a run, counted from 1. Its files have the number of the run in their names. It solves no
// coarser meshes, as far as solver.mesh_error leaves that open.
func (s *Spec) Job(run int) (Job, error) {
	c, err := s.base.With(s.Runs[run-1], fmt.Sprintf("run %d", run), s.from.file)
	if err != nil {
		return Job{}, err
	}
	if err := s.changed(c); err != nil {
		return Job{}, err
	}
	if c.Solver.MeshError == configs.Auto {
		c.Solver.MeshError = "off"
	}
	o := &c.Output
	for _, name := range []*string{&o.Field, &o.Picture, &o.History, &o.Report} {
		if filepath.Base(*name) == *name && *name != configs.Stdout { // others are refused as they are written
			*name = output.Numbered(*name, run)
		}
	}
	return Job{ID: run, Config: c, Hash: s.hash}, nil
}

// Line returns the line of a job. A file that has changed since the study began makes it that of a run that has failed.
func (s *Spec) Line(j Job, r Result) Line {
	if err := s.changed(j.Config); err != nil && r.Report != nil {
		r = Result{Failed: err.Error()}
	}
	return lineOf(j.ID, s.Runs[j.ID-1], r)
}

// changed returns an error if a file that a run reads is no longer as it was when the study began.
func (s *Spec) changed(c configs.Config) error {
	for _, in := range c.Inputs() {
		if now, _ := os.Stat(in.Path); !same(s.files[in.Path].info, now) { // nil if there is none
			return fmt.Errorf("%s %q: the file has changed since the study began", in.Key, in.Path)
		}
	}
	return nil
}

// same reports whether a file, nil for none, is as it was.
func same(was, now os.FileInfo) bool {
	if was == nil || now == nil {
		return was == now
	}
	return os.SameFile(was, now) && was.Size() == now.Size() && was.ModTime().Equal(now.ModTime())
}

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
		if isSection && full != "problem.colours" && full != "problem.regions" {
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
