package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"jacobi/internal/launch"
)

// places are the flags that say where ranks run.
type places struct {
	hosts    []string
	hostfile string
	mapBy    string
}

// place gives each rank a host; all of them this one unless hosts are given.
func (p places) place(ranks int) ([]launch.Placement, error) {
	by, err := launch.ParseMapBy(p.mapBy)
	if err != nil {
		return nil, fmt.Errorf("--map-by %w", err)
	}
	here, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("host name: %w", err)
	}
	var slots []launch.Slots
	switch {
	case p.hosts != nil && p.hostfile != "":
		return nil, errors.New("--host and --hostfile: one of them is wanted")
	case p.hosts != nil:
		slots, err = launch.ParseHosts(p.hosts)
	case p.hostfile != "":
		slots, err = launch.ReadHostfile(p.hostfile)
	default:
		return launch.OneHost(here, ranks), nil
	}
	if err != nil {
		return nil, err
	}
	placed, err := launch.Place(slots, ranks, by)
	if err != nil {
		return nil, fmt.Errorf("-np %w", err)
	}
	return placed, nil
}

// isHere says whether host is a name or an address of this machine, whose ranks need no ssh.
func isHere(host string) bool {
	name, err := os.Hostname()
	if err == nil && strings.EqualFold(host, name) || host == "localhost" {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	found, err := net.LookupIP(host)
	if err != nil {
		return false // ssh may know it
	}
	for _, ip := range found {
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return true
			}
		}
	}
	return false
}
