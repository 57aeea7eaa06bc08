package main

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"jacobi/internal/net/roster"
	"jacobi/internal/tools/probe"
)

// probeFlags are the flags of a rank that measures its machine for a scheduler. They mean what the arguments and flags
// of launcher probe mean.
type probeFlags struct {
	parts            string
	json             bool
	weight           int
	expect, pictures string
}

func (p *probeFlags) define(f *pflag.FlagSet) {
	f.StringVar(&p.parts, "probe", "", "measure the machines instead of solving: `PARTS`, as in copies,peers, or all")
	f.BoolVar(&p.json, "json", false, "with --probe: print one JSON object")
	f.IntVar(&p.weight, "weight", 0, "with --probe: `STEPS` of the kernel of the part overlap (default: by time)")
	f.StringVar(&p.expect, "expect", "", "with --probe: `FILE` with bounds of figures")
	f.StringVar(&p.pictures, "pictures", "", "with --probe: `DIR` for pictures")
}

// printer prints the probe of ranks that no launcher started.
type printer struct{ probe.Printer }

// show shows what rank 0 tells.
func (p *printer) show(e probe.Event) error {
	if e.Report == nil {
		return nil
	}
	return p.Add(*e.Report)
}

// request returns what to measure, nil if the rank is to solve, and what prints it.
func (p probeFlags) request(origin roster.Origin) (*probe.Request, *printer, error) {
	out := &printer{probe.Printer{Out: os.Stdout, JSON: p.json, Pictures: p.pictures}}
	var r probe.Request
	var err error
	switch env := os.Getenv(roster.EnvProbe); {
	case origin.By == roster.ByLauncher && env != "":
		r, err = probe.ParseRequest(env)
	case p.parts != "":
		r, err = probe.NewRequest(strings.Split(p.parts, ","), p.weight)
	default:
		return nil, out, nil
	}
	if err != nil {
		return nil, out, err
	}
	if p.expect != "" && origin.Rank == 0 {
		if out.Bounds, err = probe.ReadBounds(p.expect); err != nil {
			return nil, out, err
		}
	}
	return &r, out, out.Check()
}
