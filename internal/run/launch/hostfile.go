package launch

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"jacobi/internal/base/regular"
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
