package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"jacobi/configs"
	"jacobi/internal/agent"
	"jacobi/internal/launch"
)

// lookupLimit bounds the address look-ups of all hosts together.
const lookupLimit = 5 * time.Second

// placeFlags are the flags that say where ranks run.
type placeFlags struct {
	hosts    []string
	hostfile string
	mapBy    string
	nodes    bool
	wait     time.Duration // for agents with enough slots
	lost     []string      // hosts that earlier starts lost; they are not used again
}

// places are the hosts of the ranks.
type places struct {
	ranks []launch.Placement // by rank
	here  map[string]bool    // names of this machine among the hosts
	// agents are the offers behind the hosts; empty if the hosts are this machine or reached over ssh.
	agents []agent.Offer
}

// onThisHost places all ranks on this machine.
func onThisHost(ranks int) (places, error) {
	name, err := os.Hostname()
	if err != nil {
		return places{}, fmt.Errorf("host name: %w", err)
	}
	return places{ranks: launch.OneHost(name, ranks), here: map[string]bool{name: true}}, nil
}

// place gives each rank a host. While it waits for agents, it reports that to say.
func (f placeFlags) place(ctx context.Context, cfg configs.Config, say func(string)) (places, error) {
	by, err := launch.ParseMapBy(f.mapBy)
	if err != nil {
		return places{}, fmt.Errorf("--map-by %w", err)
	}
	ranks := cfg.Run.Ranks
	p := places{here: map[string]bool{}}
	var slots []launch.Slots
	switch {
	case f.nodes && (f.hosts != nil || f.hostfile != ""):
		err = errors.New("--nodes and --host or --hostfile: one of them is wanted")
	case f.nodes:
		p.agents, err = findNodes(ctx, cfg, f.wait, say)
		slots = agent.Slots(p.agents)
	case f.hosts != nil && f.hostfile != "":
		err = errors.New("--host and --hostfile: one of them is wanted")
	case f.hosts != nil:
		slots, err = launch.ParseHosts(f.hosts)
	case f.hostfile != "":
		slots, err = launch.ReadHostfile(f.hostfile)
	default:
		return onThisHost(ranks)
	}
	if err != nil {
		return places{}, err
	}
	if !f.nodes { // a lost agent does not answer; an agent that answers on the same host is a new one
		slots = slices.DeleteFunc(slots, func(s launch.Slots) bool { return slices.Contains(f.lost, s.Host) })
	}
	if p.ranks, err = launch.Place(slots, ranks, by); err != nil {
		return places{}, fmt.Errorf("-np %w", err)
	}
	if f.nodes {
		return p, nil // agents start the ranks on this machine, too
	}
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	for _, name := range p.names() {
		if isHere(ctx, name) {
			p.here[name] = true
		}
	}
	return p, nil
}

// names returns the hosts in the order of their first ranks.
func (p places) names() []string {
	var names []string
	seen := map[string]bool{}
	for _, r := range p.ranks {
		if !seen[r.Host] {
			seen[r.Host] = true
			names = append(names, r.Host)
		}
	}
	return names
}

// hosts returns the names of the hosts, for messages.
func (p places) hosts() string { return strings.Join(p.names(), ", ") }

// isHere reports whether host is a name or an address of this machine, whose ranks need no ssh. A name that cannot be
// resolved may be an alias in the ssh configuration.
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
