package study

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"jacobi/configs"
	"jacobi/internal/base/regular"
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

// Job returns the job of a run, counted from 1. Its files have the number of the run in their names.
func (s *Spec) Job(run int) (Job, error) {
	c, err := s.base.With(s.Runs[run-1], fmt.Sprintf("run %d", run), s.from.file)
	if err != nil {
		return Job{}, err
	}
	if err := s.changed(c); err != nil {
		return Job{}, err
	}
	o := &c.Output
	for _, name := range []*string{&o.Field, &o.Picture, &o.History, &o.Report} {
		if filepath.Base(*name) == *name { // others are refused as they are written
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
