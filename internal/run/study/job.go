package study

import (
	"fmt"
	"path/filepath"
	"slices"

	"jacobi/configs"
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

// NewJob returns the job of a run with its own keys. Its files have the number of the run in their names.
func NewJob(base *configs.Base, number int, keys Keys, from From, hash bool) (Job, error) {
	c, err := base.With(keys, fmt.Sprintf("run %d", number), from.file)
	if err != nil {
		return Job{}, err
	}
	o := &c.Output
	for _, name := range []*string{&o.Field, &o.Picture, &o.History, &o.Report} {
		if filepath.Base(*name) == *name { // others are refused as they are written
			*name = output.Numbered(*name, number)
		}
	}
	return Job{ID: number, Config: c, Hash: hash}, nil
}
