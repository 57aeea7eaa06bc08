// Package doctor tests whether a run would start: it takes the steps of the run up to its first sweep and collects the
// faults and warnings with their remedies.
package doctor

import (
	"fmt"
	"slices"
	"strings"

	"jacobi/internal/base/show"
	"jacobi/internal/base/version"
	"jacobi/internal/run/plan"
	"jacobi/internal/tools/examine"
)

// Diagnosis says whether a run would start.
type Diagnosis struct {
	Starts   bool           `json:"starts"`
	Run      string         `json:"run,omitempty"`    // description; "" if the run could not be planned
	Faster   string         `json:"faster,omitempty"` // a method that would be much faster
	Version  string         `json:"version"`          // version of this launcher
	Faults   []Finding      `json:"faults"`
	Warnings []Finding      `json:"warnings"`
	Nodes    []Node         `json:"nodes"`
	Ranks    []examine.Rank `json:"ranks"`
	// Output is output.dir, as this machine sees it; nil if the run writes no files.
	Output *examine.Place `json:"output,omitempty"`
}

// Finding is a fault or a warning with its remedy.
type Finding struct {
	What string `json:"what"`
	Do   string `json:"do"`
}

// diagnosis returns the diagnosis of a run that was not planned, or whose ranks were not started. Each fault counts
// once.
func diagnosis(faults, warnings []Finding) Diagnosis {
	d := Diagnosis{Version: version.String(), Faults: []Finding{}, Warnings: append([]Finding{}, warnings...),
		Nodes: []Node{}, Ranks: []examine.Rank{}}
	for _, f := range faults {
		known := func(k Finding) bool { return k.What == f.What }
		if !slices.ContainsFunc(d.Faults, known) {
			d.Faults = append(d.Faults, f)
		}
	}
	d.Starts = len(d.Faults) == 0
	return d
}

// Refused returns the diagnosis of a run whose keys or flags were refused with err.
func Refused(err error, environ []string) Diagnosis {
	return diagnosis(faultsOf(err, correctKey), strayVariables(environ))
}

// faultsOf returns a fault for each line of err; none if err is nil.
func faultsOf(err error, do string) (faults []Finding) {
	if err == nil {
		return nil
	}
	for line := range strings.SplitSeq(show.Values(err.Error()), "\n") {
		faults = append(faults, Finding{line, do})
	}
	return faults
}

// warning returns a warning.
func warning(do, format string, args ...any) Finding {
	return Finding{fmt.Sprintf(format, args...), do}
}

// strayVariables warns of variables of environ that look like a key's but are not.
func strayVariables(environ []string) (warnings []Finding) {
	for _, text := range plan.StrayVariables(environ) {
		warnings = append(warnings, Finding{text, "unset it, or set the variable that was meant"})
	}
	return warnings
}
