package halo

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
)

// ListenAt says where the first end of a link over TCP listens.
type ListenAt struct {
	Where  string // an address, a network such as 10.1.0.0/16, or the name of an interface; "": all interfaces
	Lo, Hi int    // ports; both 0: any
}

// listen returns a listener, and the addresses under which others may reach it.
func listen(at ListenAt) (net.Listener, []string, error) {
	hosts, err := at.hosts()
	if err != nil {
		return nil, nil, err
	}
	host := "" // all interfaces
	if len(hosts) == 1 && at.Where != "" {
		host = hosts[0].String()
	}
	l, err := at.port(host)
	if err != nil {
		return nil, nil, err
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	var addresses []string
	for _, h := range hosts[:min(len(hosts), maxAddresses)] {
		addresses = append(addresses, netip.AddrPortFrom(h, port).String())
	}
	return l, addresses, nil
}

// port listens on a free port of the range, beginning anywhere so that ranks of one host seldom meet.
func (at ListenAt) port(host string) (net.Listener, error) {
	n := at.Hi - at.Lo + 1
	first := rand.IntN(n)
	var err error
	for i := range n {
		port := at.Lo + (first+i)%n
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	if n > 1 {
		err = fmt.Errorf("no free port from %d to %d: %w", at.Lo, at.Hi, err)
	}
	return nil, err
}

// hosts returns the addresses of this machine that at names. Loopback addresses are the last resort.
func (at ListenAt) hosts() ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(at.Where); err == nil {
		return []netip.Addr{a}, nil
	}
	network, errNet := netip.ParsePrefix(at.Where)
	addrs, err := interfaceAddrs(at.Where, errNet == nil)
	if err != nil {
		return nil, err
	}
	var own, loopback []netip.Addr
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, _ := netip.AddrFromSlice(n.IP)
		ip = ip.Unmap()
		switch {
		case errNet == nil && !network.Contains(ip):
		case ip.IsLoopback():
			loopback = append(loopback, ip)
		case ip.IsGlobalUnicast():
			own = append(own, ip)
		}
	}
	if len(own) == 0 {
		own = loopback
	}
	if len(own) == 0 {
		return nil, fmt.Errorf("no address of this machine is in %s", at.Where)
	}
	return own, nil
}

func interfaceAddrs(where string, isNetwork bool) ([]net.Addr, error) {
	if where == "" || isNetwork {
		return net.InterfaceAddrs()
	}
	i, err := net.InterfaceByName(where)
	if err != nil {
		return nil, fmt.Errorf("%s is no address, no network and no interface of this machine: %w", where, err)
	}
	return i.Addrs()
}
