// Package hosts places the ranks of a run on hosts and reaches these: this machine, machines behind ssh, and nodes with
// agents. It gives the ranks of each host their access to the run's NATS server.
package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"jacobi/configs"
	"jacobi/internal/run/agent"
	"jacobi/internal/run/launch"
)

// Where holds the flags that say where ranks run. Without hosts, hostfile and agents they run on this machine.
type Where struct {
	Hosts    []string      // values of --host
	Hostfile string        // path; "" for none
	MapBy    string        // slot or node
	Agents   bool          // place ranks on the agents at nats.url
	Wait     time.Duration // for agents with enough slots
	Lost     []string      // hosts that earlier starts lost; they are not used again
}

// Place gives each rank of cfg a host. While it waits for agents, it reports that to say. An error names the flag.
func (w Where) Place(ctx context.Context, cfg configs.Config, say func(string)) (Places, error) {
	byNode, known := map[string]bool{"slot": false, "node": true}[w.MapBy]
	if !known {
		return Places{}, fmt.Errorf("--map-by %q: allowed are slot and node", w.MapBy)
	}
	if !w.Agents && w.Hosts == nil && w.Hostfile == "" {
		if err := crowded(cfg.Working(), runtime.NumCPU()); err != nil {
			return Places{}, err
		}
		return OnThisHost(cfg.Working())
	}
	slots, agents, err := w.slots(ctx, cfg, say)
	if err != nil {
		return Places{}, err
	}
	ranks, err := launch.Place(slots, cfg.Working(), byNode)
	if err != nil {
		return Places{}, fmt.Errorf("-np %w", err)
	}
	p := Places{Placements: ranks, Agents: agents}
	if !w.Agents { // agents start the ranks on this machine, too
		p.Here = hereAmong(ctx, p.Names())
	}
	return p, nil
}

// crowded refuses ranks far beyond the cores of this machine, which are a slip of the finger and could take all of its
// memory. Slots that --host names are the user's word that they are meant.
func crowded(ranks, cores int) error {
	most := max(64, 16*cores)
	if ranks <= most {
		return nil
	}
	return fmt.Errorf("-np: %s ranks would share %s of this machine, and at most %d start there unless "+
		"--host localhost:%d asks for them", humanize.Comma(int64(ranks)), english.Plural(cores, "core", ""), most,
		ranks)
}

// slots returns the slots of the hosts that the flags name, and the agents behind them if these are the hosts.
func (w Where) slots(ctx context.Context, cfg configs.Config, say func(string)) (slots []launch.Slots,
	agents []agent.Offer, err error) {
	switch {
	case w.Agents && (w.Hosts != nil || w.Hostfile != ""):
		return nil, nil, errors.New("--nodes and --host or --hostfile: only one of them is allowed")
	case w.Agents: // a lost agent does not answer; an agent that answers on the same host is a new one
		agents, err = findAgents(ctx, cfg, w.Wait, say)
		return agent.Slots(agents), agents, err
	}
	slots, err = w.named()
	lost := func(s launch.Slots) bool { return slices.Contains(w.Lost, s.Host) }
	return slices.DeleteFunc(slots, lost), nil, err
}

// named returns the slots that --host or --hostfile name.
func (w Where) named() ([]launch.Slots, error) {
	switch {
	case w.Hosts != nil && w.Hostfile != "":
		return nil, errors.New("--host and --hostfile: only one of them is allowed")
	case w.Hosts != nil:
		return launch.ParseHosts(w.Hosts)
	}
	return launch.ReadHostfile(w.Hostfile)
}

// Slots returns the number of slots that --host or --hostfile name; 0 if they name none, or are wrong, as Place says.
func (w Where) Slots() (n int) {
	if w.Hosts == nil && w.Hostfile == "" {
		return 0
	}
	list, _ := w.named()
	for _, s := range list {
		n += s.Slots
	}
	return n
}

// Places are the hosts of the ranks.
type Places struct {
	Placements []launch.Placement // by rank
	Here       map[string]bool    // names of this machine among the hosts
	// Agents are the offers behind the hosts; empty if the hosts are this machine or reached over ssh.
	Agents []agent.Offer
}

// OnThisHost places all ranks on this machine.
func OnThisHost(ranks int) (Places, error) {
	name, err := os.Hostname()
	if err != nil {
		return Places{}, fmt.Errorf("host name: %w", err)
	}
	return Places{Placements: launch.OneHost(name, ranks), Here: map[string]bool{name: true}}, nil
}

// Names returns the hosts in the order of their first ranks.
func (p Places) Names() []string {
	var names []string
	seen := map[string]bool{}
	for _, r := range p.Placements {
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
	for _, r := range p.Placements {
		if p.Here[r.Host] {
			n++
		}
	}
	return n
}

// lookupLimit bounds the address look-ups of all hosts together.
const lookupLimit = 5 * time.Second

// hereAmong returns which of names are names or addresses of this machine, whose ranks need no ssh. A name that cannot
// be resolved may be an alias in the ssh configuration.
func hereAmong(ctx context.Context, names []string) map[string]bool {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	host, _ := os.Hostname() // "" is no name of a host
	own, _ := net.InterfaceAddrs()
	here := map[string]bool{}
	for _, name := range names {
		if strings.EqualFold(name, host) || name == "localhost" {
			here[name] = true
			continue
		}
		found, _ := net.DefaultResolver.LookupIPAddr(ctx, name)
		for _, ip := range found {
			if slices.ContainsFunc(own, func(a net.Addr) bool {
				n, ok := a.(*net.IPNet)
				return ok && n.IP.Equal(ip.IP)
			}) {
				here[name] = true
			}
		}
	}
	return here
}
