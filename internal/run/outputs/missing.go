package outputs

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"jacobi/internal/observe/output"
)

// lack notes why this rank has no part in an output besides the field.
func (o *Outputs) lack(name string, why error) {
	if o.lacks == nil {
		o.lacks = map[string]string{}
	}
	if o.lacks[name] == "" {
		o.lacks[name] = why.Error()
	}
}

// miss enters in the report what ranks have no part in: results, if that fault says so, and outputs that ranks lack,
// whose files are given up. It returns the picture, or one that fails.
func (o *Outputs) miss(report *output.Report, results string, picture *drawing) (*drawing, error) {
	if results != "" {
		report.Missing = append(report.Missing, output.FileFault{Name: "results", Error: results})
	}
	lacks := map[string]string{}
	for _, k := range report.Ranks {
		for name, why := range k.Missing {
			if lacks[name] == "" {
				lacks[name] = fmt.Sprintf("rank %d on %s: %s", k.Rank, k.Host, why)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lacks)) {
		fault := output.FileFault{Name: name, Error: lacks[name]}
		i := slices.IndexFunc(o.arrays, func(a *array) bool { return o.titleOf(a) == name && a.file != nil })
		switch {
		case name == o.Config.Output.Picture:
			picture = &drawing{done: make(chan struct{}), err: errors.New(fault.Error)}
			close(picture.done)
		case i >= 0:
			report.Failed = append(report.Failed, fault)
			if err := o.arrays[i].file.Abort(); err != nil {
				return nil, err
			}
			o.arrays[i].file = nil
		default:
			report.Missing = append(report.Missing, fault)
		}
	}
	return picture, nil
}
