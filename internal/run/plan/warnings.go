package plan

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/dustin/go-humanize/english"

	"jacobi/configs"
	"jacobi/internal/net/roster"
)

// pythonsLauncher names the program for the package jacobisolver of Python.
const pythonsLauncher = "JACOBI_LAUNCHER"

// StrayVariables returns a warning for each variable of environ that looks like a key's but is not.
func StrayVariables(environ []string) []string {
	others := append(roster.Variables(), pythonsLauncher)
	return configs.StrayVariables(environ, append(others, roster.Tasks()...))
}

// Warnings returns warnings for the user before ranks start that do not solve, one line each.
func (p *Plan) Warnings(environ []string) []string {
	return slices.Concat(p.StartWarnings(environ), p.Notes, p.smallForGPUs())
}

// StartWarnings returns the warnings about the start of the ranks.
func (p *Plan) StartWarnings(environ []string) []string {
	return slices.Concat(StrayVariables(environ), p.busyCores(runtime.NumCPU()))
}

// JobWarnings returns the warnings about the problem that the ranks solve and about the way to its solution.
func (p *Plan) JobWarnings(ctx context.Context) []string {
	list := slices.Concat(p.Notes, p.smallForGPUs())
	if e := p.Expects(ctx); e.Warning != "" {
		list = append(list, e.Warning+"; "+e.Do)
	}
	return list
}

// busyCores returns a warning if the ranks on this machine have more threads than it has cores.
func (p *Plan) busyCores(cores int) []string {
	each, ranks := p.Config.Device.Threads, p.RanksHere()
	if ranks == 0 || p.OnGPUs {
		return nil
	}
	if each == 0 {
		return busyRanks(ranks, cores)
	}
	threads := Times(ranks, each)
	if threads <= cores {
		return nil
	}
	return []string{fmt.Sprintf("device.threads %d: %s on this machine keep %d threads busy, and it has %s", each,
		english.Plural(ranks, "rank", ""), threads, english.Plural(cores, "core", ""))}
}

// fewRanks may share cores without a warning. The first run of the documents has so many.
const fewRanks = 4

// busyRanks returns a warning if a machine has fewer cores than ranks.
func busyRanks(ranks, cores int) []string {
	if ranks <= max(cores, fewRanks) {
		return nil
	}
	return []string{fmt.Sprintf("%d ranks share %s of this machine: each waits while others compute; -np %d gives "+
		"each a core of its own", ranks, english.Plural(cores, "core", ""), cores)}
}

// Times multiplies positive numbers. If the product overflows, it returns math.MaxInt.
func Times(a, b int) int {
	if a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}
