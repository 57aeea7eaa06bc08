package configs

import (
	"net"
	"strconv"
	"time"
)

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
