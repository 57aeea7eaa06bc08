package study

import (
	"fmt"

	"jacobi/configs"
	"jacobi/internal/observe/output"
)

// NewJob returns the job of a run with its own keys. Its files have the number of the run in their names.
func NewJob(base *configs.Base, number int, keys Keys, hash bool) (Job, error) {
	c, err := base.With(keys, fmt.Sprintf("run %d", number))
	if err != nil {
		return Job{}, err
	}
	o := &c.Output
	for _, name := range []*string{&o.Field, &o.Picture, &o.History, &o.Report} {
		*name = output.Numbered(*name, number)
	}
	return Job{ID: number, Config: c, Hash: hash}, Check(c)
}

// Check refuses a run that ranks cannot do: one with faulty values, or one that needs more memory than this machine
// has.
func Check(c configs.Config) error {
	if err := configs.Validate(c); err != nil {
		return err
	}
	if err := configs.CheckMany(c); err != nil {
		return err
	}
	for _, f := range c.Output.Files() {
		if !output.IsLooseName(f.Name) {
			return fmt.Errorf("%s %q: the runs of one start write .npy, .vti, .png, .jpg, .csv and .json", f.Key,
				f.Name)
		}
	}
	return nil
}
