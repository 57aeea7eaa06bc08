package configs

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// ListenAt is a value of halo.direct.listen, as halo.ListenAt has it.
type ListenAt struct {
	Where  string // an address, a network such as 10.1.0.0/16, or the name of an interface; "": all interfaces
	Lo, Hi int    // ports; both 0: any
}

// ParseListen parses WHERE:PORTS, where PORTS is empty, a port or a range such as 47000-47099. An IPv6 address or
// network stands in brackets. The empty text is any port of all interfaces.
func ParseListen(text string) (ListenAt, error) {
	if text == "" {
		return ListenAt{}, nil
	}
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return ListenAt{}, errors.New("a colon and ports are missing")
	}
	at := ListenAt{Where: text[:i]}
	if strings.HasPrefix(at.Where, "[") && strings.HasSuffix(at.Where, "]") {
		at.Where = at.Where[1 : len(at.Where)-1]
	} else if strings.Contains(at.Where, ":") {
		return ListenAt{}, errors.New("an IPv6 address or network stands in brackets")
	}
	ports := text[i+1:]
	if ports == "" {
		return at, nil
	}
	lo, hi, isRange := strings.Cut(ports, "-")
	if !isRange {
		hi = lo
	}
	low, errLo := strconv.ParseUint(lo, 10, 16)
	high, errHi := strconv.ParseUint(hi, 10, 16)
	if errLo != nil || errHi != nil || low < 1 || low > high {
		return ListenAt{}, fmt.Errorf("ports %q: must be a port or a range such as 47000-47099, 1 to 65535", ports)
	}
	at.Lo, at.Hi = int(low), int(high)
	return at, nil
}

// CheckLoopback returns an error unless address is HOST:PORT with an address of the loopback interface, or localhost.
func CheckLoopback(address string) error {
	host, port, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	if err == nil && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		if _, err := strconv.ParseUint(port, 10, 16); err == nil {
			return nil
		}
	}
	return errors.New("must be an address of this machine alone with a port, as in 127.0.0.1:0, where 0 is any " +
		"free port; ssh -L reaches it from elsewhere")
}

// Metrics says where a run serves metrics to Prometheus.
type Metrics struct {
	Listen string        `key:"listen"` // HOST:PORT; "": nowhere
	Linger time.Duration `key:"linger"` // how long they stay after the run, unless they are read before
}

// metrics checks the section metrics.
func (v *validator) metrics(m Metrics) {
	if m.Listen != "" && !listens(m.Listen) {
		v.fault("metrics.listen %q: must be HOST:PORT, such as 127.0.0.1:9464 or, on all interfaces, :9464", m.Listen)
	}
	if m.Linger < 0 {
		v.fault("metrics.linger %s: must be at least 0s", m.Linger)
	}
}

// listens reports whether address is HOST:PORT with a number for the port. Whether this machine has the host is found
// when the server starts.
func listens(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
