package hosts

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"jacobi/internal/run/agent"
	"jacobi/internal/run/launch"
)

// Places are the hosts of the ranks.
type Places struct {
	Ranks []launch.Placement // by rank
	Here  map[string]bool    // names of this machine among the hosts
	// Agents are the offers behind the hosts; empty if the hosts are this machine or reached over ssh.
	Agents []agent.Offer
}

// OnThisHost places all ranks on this machine.
func OnThisHost(ranks int) (Places, error) {
	name, err := os.Hostname()
	if err != nil {
		return Places{}, fmt.Errorf("host name: %w", err)
	}
	return Places{Ranks: launch.OneHost(name, ranks), Here: map[string]bool{name: true}}, nil
}

// Names returns the hosts in the order of their first ranks.
func (p Places) Names() []string {
	var names []string
	seen := map[string]bool{}
	for _, r := range p.Ranks {
		if !seen[r.Host] {
			seen[r.Host] = true
			names = append(names, r.Host)
		}
	}
	return names
}

// Hosts returns the names of the hosts, for messages.
func (p Places) Hosts() string { return strings.Join(p.Names(), ", ") }

// RanksHere returns the number of ranks on this machine.
func (p Places) RanksHere() (n int) {
	for _, r := range p.Ranks {
		if p.Here[r.Host] {
			n++
		}
	}
	return n
}

// lookupLimit bounds the address look-ups of all hosts together.
const lookupLimit = 5 * time.Second

// hereAmong returns which of names are names or addresses of this machine, whose ranks need no ssh.
func hereAmong(ctx context.Context, names []string) map[string]bool {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	here := map[string]bool{}
	for _, name := range names {
		if isHere(ctx, name) {
			here[name] = true
		}
	}
	return here
}

// isHere reports whether host is a name or an address of this machine. A name that cannot be resolved may be an alias
// in the ssh configuration.
func isHere(ctx context.Context, host string) bool {
	name, err := os.Hostname()
	if err == nil && strings.EqualFold(host, name) || host == "localhost" {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return false
	}
	for _, ip := range found {
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip.IP) {
				return true
			}
		}
	}
	return false
}
