// Package launch starts the ranks of a run, on this machine and on others, watches them, and ensures that none of them
// outlives the run.
package launch

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"jacobi/internal/base/regular"
	"jacobi/internal/net/roster"
)

// MaxSlots is far more than any run has ranks.
const MaxSlots = 1 << 20

// maxHostfile is far larger than any hostfile, in bytes.
const maxHostfile = 16 << 20

// hostName matches a destination of ssh: a name or an address, with an optional user name before it. A destination
// never begins with a dash, which ssh would read as an option.
var hostName = regexp.MustCompile(
	`^([A-Za-z0-9_][A-Za-z0-9_.-]*@)?([A-Za-z0-9_][A-Za-z0-9_.-]*|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9_.-]+)?)$`)

// ParseHosts reads the values of --host: "a:4,b:4". A host without a number has one slot. The slots of a host that is
// named several times are added up.
func ParseHosts(values []string) ([]Slots, error) {
	var list hostList
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			host, slots, err := splitHost(strings.TrimSpace(item))
			if err != nil {
				return nil, fmt.Errorf("--host %q: %w", value, err)
			}
			list.add(host, slots)
		}
	}
	return list, nil
}

// ReadHostfile reads a hostfile as mpirun does: one host a line, followed by slots=N (default 1); # begins a comment.
// The slots of a host that is named several times are added up.
func ReadHostfile(path string) ([]Slots, error) {
	data, err := regular.ReadFile(path, maxHostfile)
	if err != nil {
		return nil, fmt.Errorf("--hostfile: %w", err)
	}
	var list hostList
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		host, slots, err := hostLine(words)
		if err != nil {
			return nil, fmt.Errorf("--hostfile %s, line %d: %w", path, number, err)
		}
		list.add(host, slots)
	}
	if list == nil {
		return nil, fmt.Errorf("--hostfile %s: no host in it; a line looks like: node1 slots=4", path)
	}
	return list, nil
}

// hostLine reads the words of a line: host, slots=N, max_slots=N.
func hostLine(words []string) (host string, slots int, err error) {
	if host, slots, err = splitHost(words[0]); err != nil {
		return "", 0, err
	}
	limit := MaxSlots
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		switch strings.ReplaceAll(name, "-", "_") {
		case "slots":
			slots, err = parseSlots(w, value)
		case "max_slots": // only checked: no rank is ever placed beyond slots
			limit, err = parseSlots(w, value)
		default:
			err = fmt.Errorf("%q: allowed after a host are slots=N and max_slots=N", w)
		}
		if err != nil {
			return "", 0, err
		}
	}
	if slots > limit {
		return "", 0, fmt.Errorf("%s has slots=%d and max_slots=%d: slots may not exceed max_slots",
			host, slots, limit)
	}
	return host, slots, nil
}

// splitHost reads "host", "host:4", "[address]" or "[address]:4".
func splitHost(item string) (host string, slots int, err error) {
	host, slots = item, 1
	bracketed, rest, closed := strings.Cut(item, "]")
	address, opened := strings.CutPrefix(bracketed, "[")
	number, given := "", false
	switch {
	case opened && closed:
		if host = address; rest != "" {
			if number, given = strings.CutPrefix(rest, ":"); !given {
				return "", 0, fmt.Errorf("%q: must be [address]:slots", item)
			}
		}
	case strings.Count(item, ":") == 1:
		host, number, given = strings.Cut(item, ":")
	}
	if given {
		if slots, err = parseSlots(item, number); err != nil {
			return "", 0, err
		}
	}
	if host == "" {
		return "", 0, errors.New("must be a host, as in a:4,b:4")
	}
	if !hostName.MatchString(host) {
		return "", 0, fmt.Errorf("%q is no name or address of a host", host)
	}
	return host, slots, nil
}

func parseSlots(what, value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > MaxSlots {
		return 0, fmt.Errorf("%q: 1 to %d slots are allowed", what, MaxSlots)
	}
	return n, nil
}

// hostList keeps hosts in the order in which they were first named.
type hostList []Slots

func (l *hostList) add(host string, slots int) {
	for i := range *l {
		if (*l)[i].Host == host {
			(*l)[i].Slots += slots
			return
		}
	}
	*l = append(*l, Slots{host, slots})
}

// Host is a place where ranks can be started: this machine (Local), a machine reached over ssh (SSH), or a node with an
// agent. A supervisor starts, signals and ends the ranks of a run through this interface alone.
//
// Implement it directly, or pass NewRemote a Wire whose other end Serve answers. NewRemote and Serve ensure, over any
// Wire, that the ranks do not outlive the launcher and that the launcher notices the loss of the ranks.
type Host interface {
	// Start starts the ranks of spec, all or none, and returns once they run. It is called once. It passes output
	// lines and exits to sink until each rank has had its Exit.
	Start(ctx context.Context, spec Spec, sink Sink) error
	// Signal sends sig to the ranks that have not ended, each with its process group. It does not wait.
	Signal(sig syscall.Signal)
	// Suspend stops the ranks that have not ended, as SIGSTOP does, until they get SIGCONT. It returns once they
	// are stopped or ctx ends. From then on the host tolerates silence from this process, which may stop itself.
	Suspend(ctx context.Context)
	// Close kills the ranks that have not ended and releases the host, in bounded time. It may be called again.
	Close() error
}

// Spec says what to start on one host. Env may hold secrets, so a Spec travels over the wire, never on a command line.
type Spec struct {
	// Path is the program of the ranks. If it is empty, the starting process looks for RankBinary.
	Path  string            `json:"path,omitempty"`
	Dir   string            `json:"dir,omitempty"` // working directory; empty: that of the starting process
	Env   []string          `json:"env"`           // VAR=value; overrides the environment of the starting process
	Ranks []roster.Identity `json:"ranks"`         // the variables of an identity are added to Env
}

// Sink receives the output and the exits of a host's ranks. Several goroutines call it.
type Sink struct {
	Line func(rank int, s Stream, line []byte) // one whole line; the callee must not keep the slice
	Exit func(Exit)                            // once for each rank, after its last line
}

// Exit is the end of a rank.
type Exit struct {
	Rank   int            `json:"rank"`
	Code   int            `json:"code,omitempty"`   // exit code; valid if Signal and Lost are empty
	Signal syscall.Signal `json:"signal,omitempty"` // the signal that ended the rank
	Said   string         `json:"said,omitempty"`   // the reason that the rank gave on stderr, in one line
	OOM    bool           `json:"oom,omitempty"`    // the kernel killed processes meanwhile because memory ran out
	// Lost says why the end of the rank is unknown: its host cannot be reached any more.
	Lost string `json:"lost,omitempty"`
}

// Placement says where a rank runs.
type Placement struct {
	Rank      int
	Host      string
	LocalRank int // index among the ranks of the same host: 0 <= LocalRank < LocalSize
	LocalSize int
}

// Slots is the number of ranks that a host takes.
type Slots struct {
	Host  string
	Slots int
}

// OneHost places all ranks of a run on one host.
func OneHost(host string, ranks int) []Placement {
	ps, _ := Place([]Slots{{host, ranks}}, ranks, false) // there are as many slots as ranks
	return ps
}

// Place gives each rank a slot: byNode on each host in turn, else on one host after the other. If there are too few
// slots, the error lists them.
func Place(hosts []Slots, ranks int, byNode bool) ([]Placement, error) {
	total := 0
	for _, h := range hosts {
		total += h.Slots
	}
	if ranks > total {
		var there []string
		for _, h := range hosts {
			there = append(there, fmt.Sprintf("%s %d", h.Host, h.Slots))
		}
		return nil, fmt.Errorf("%d ranks need %[1]d slots, and there are %d: %s", ranks, total,
			strings.Join(there, ", "))
	}
	turn := total // slots of a host that are filled before the next host
	if byNode {
		turn = 1
	}
	ps := make([]Placement, 0, ranks)
	taken := make([]int, len(hosts))
	for len(ps) < ranks {
		for i, h := range hosts {
			for range min(turn, h.Slots-taken[i], ranks-len(ps)) {
				ps = append(ps, Placement{Rank: len(ps), Host: h.Host, LocalRank: taken[i]})
				taken[i]++
			}
		}
	}
	size := map[string]int{}
	for i, h := range hosts {
		size[h.Host] = taken[i]
	}
	for i := range ps {
		ps[i].LocalSize = size[ps[i].Host]
	}
	return ps, nil
}
