// Command link joins network namespaces by links of a given rate and latency, where the kernel has no netem.
//
//	link -rate 1gbit -latency 1ms jn1 jn2 ...
//
// The rate is a number of bits a second, and may end in kbit, mbit or gbit as those of tc.
//
// Each namespace gets the interface jacobi0: the first one address 10.123.45.11, the next one .12, and so on. The
// program's own namespace gets .1. A packet leaves its namespace at the link's rate, one after the other, and arrives
// elsewhere after the latency. The program prints "ready" and runs until it is killed.
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	device = "jacobi0"
	mtu    = 9000
	subnet = 10<<24 | 123<<16 | 45<<8 // of all addresses
	queue  = 1 << 14                  // packets under way from one namespace
)

// port is the end of a link in one namespace.
type port struct {
	namespace string // "" for the program's own
	address   uint32
	tun       *os.File
	queued    chan packet
}

// packet arrives at a time.
type packet struct {
	at   time.Time
	data []byte
}

func main() {
	bits := flag.String("rate", "1gbit", "bits a second")
	latency := flag.Duration("latency", time.Millisecond, "from one namespace to another")
	flag.Parse()
	rate, err := parseRate(*bits)
	if err == nil {
		err = run(rate, *latency, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "link:", err)
		os.Exit(1)
	}
}

// parseRate returns the bits a second of a rate such as "1gbit" or "1e9".
func parseRate(s string) (float64, error) {
	number, unit := s, 1.0
	for suffix, bits := range map[string]float64{"kbit": 1e3, "mbit": 1e6, "gbit": 1e9} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			number, unit = n, bits
		}
	}
	rate, err := strconv.ParseFloat(number, 64)
	if err != nil || !(rate > 0) || math.IsInf(rate, 0) {
		return 0, fmt.Errorf("rate %q: a positive number of bits a second, kbit, mbit or gbit is allowed", s)
	}
	return rate * unit, nil
}

func run(rate float64, latency time.Duration, namespaces []string) error {
	if latency < 0 || len(namespaces) > 200 {
		return fmt.Errorf("latency %v, %d namespaces: no negative latency and at most 200 namespaces are allowed",
			latency, len(namespaces))
	}
	ports := map[uint32]*port{}
	for i, namespace := range append([]string{""}, namespaces...) {
		p := &port{namespace: namespace, address: subnet + 1, queued: make(chan packet, queue)}
		if i > 0 {
			p.address = subnet + 10 + uint32(i)
		}
		if err := p.open(); err != nil {
			return fmt.Errorf("namespace %q: %w", namespace, err)
		}
		ports[p.address] = p
	}
	failed := make(chan error)
	for _, p := range ports {
		go func() { failed <- p.send(rate, latency) }()
		go func() { failed <- p.deliver(ports) }()
	}
	fmt.Println("ready")
	return <-failed
}

// open makes the interface in the port's namespace and gives it its address.
func (p *port) open() error {
	if p.namespace != "" {
		runtime.LockOSThread() // the thread's namespace is changed, and changed back below
		own, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			return err
		}
		there, err := os.Open("/run/netns/" + p.namespace)
		if err != nil {
			return err
		}
		if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		defer func() {
			if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); err == nil {
				runtime.UnlockOSThread()
			}
			_, _ = own.Close(), there.Close()
		}()
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return fmt.Errorf("make interface %s: %w", device, err)
	}
	p.tun = os.NewFile(uintptr(fd), device)
	b := binary.BigEndian.AppendUint32(nil, p.address)
	for _, words := range [][]string{
		{"addr", "add", fmt.Sprintf("%d.%d.%d.%d/24", b[0], b[1], b[2], b[3]), "dev", device},
		{"link", "set", device, "mtu", fmt.Sprint(mtu), "txqueuelen", "10000", "up"},
		{"link", "set", "lo", "up"},
	} {
		if out, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", words, err, out)
		}
	}
	return nil
}

// send takes packets from the namespace at the rate of the link.
func (p *port) send(rate float64, latency time.Duration) error {
	free := time.Now() // when the link has sent what it was given
	buffer := make([]byte, 1<<16)
	for {
		n, err := p.tun.Read(buffer)
		if err != nil {
			return err
		}
		if now := time.Now(); free.Before(now) {
			free = now
		}
		free = free.Add(time.Duration(float64(8*n) / rate * float64(time.Second)))
		p.queued <- packet{free.Add(latency), append([]byte(nil), buffer[:n]...)}
	}
}

// deliver hands the packets to the namespaces that they are for, in order, each when its time has come.
func (p *port) deliver(ports map[uint32]*port) error {
	for packet := range p.queued {
		time.Sleep(time.Until(packet.at))
		if len(packet.data) < 20 || packet.data[0]>>4 != 4 {
			continue // not IPv4
		}
		to := ports[binary.BigEndian.Uint32(packet.data[16:])]
		if to == nil {
			continue
		}
		if _, err := to.tun.Write(packet.data); err != nil && !errors.Is(err, unix.EAGAIN) {
			return err
		}
	}
	return nil
}
