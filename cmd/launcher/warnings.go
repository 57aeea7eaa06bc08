package main

import (
	"fmt"
	"runtime"
	"slices"

	"jacobi/configs"
	"jacobi/internal/examine"
	"jacobi/internal/roster"
)

// strayVariables returns a warning for each variable of environ that looks like a key's but is not.
func strayVariables(environ []string) []string {
	return configs.StrayVariables(environ, append(roster.Variables(), examine.Env))
}

// busyCores returns a warning if the ranks on this machine have more threads than it has cores.
func (p *plan) busyCores() []string {
	if p.cfg.Device.Threads == 0 || p.sweepOnGPUs() {
		return nil
	}
	ranks := 0
	for _, at := range p.ranks {
		if p.here[at.Host] {
			ranks++
		}
	}
	threads := times(max(ranks, 1), p.cfg.Device.Threads)
	if cores := runtime.NumCPU(); ranks > 0 && threads > cores {
		return []string{fmt.Sprintf("device.threads %d: %s on this machine keep %d threads busy, and it has %s",
			p.cfg.Device.Threads, plural(ranks, "rank"), threads, plural(cores, "core"))}
	}
	return nil
}

// warnings returns warnings for the user before the run starts, one line each.
func (p *plan) warnings(environ []string) []string {
	return slices.Concat(strayVariables(environ), p.notes, p.busyCores())
}
