// Package agent starts ranks on nodes where an agent waits for them at a NATS server: the agent, how a launcher finds
// agents, and the way between the two. To users of the nats command an agent is a service like any other.
package agent

import (
	"fmt"

	"jacobi/internal/launch"
)

const (
	// ServiceName is the name of agents among the services of a NATS server.
	ServiceName = "jacobi-node"
	// serviceVersion is that of the messages between agents and launchers.
	serviceVersion = "1.0.0"

	// Group stands where others have a run's id: what agents and launchers share, if anything, is sealed for it.
	Group        = "nodes"
	prefix       = "jacobi." + Group
	offerSubject = prefix + ".offer"
)

// Offer is what an agent tells a launcher that asks.
type Offer struct {
	ID      string `json:"id"` // public key of the agent, new at every start, in hexadecimal digits
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Version string `json:"version"` // of the program
	Slots   int    `json:"slots"`
	Free    int    `json:"free"`
	What    string `json:"what"` // what the slots are: "2 GPUs", "8 cores"
}

// String returns "host (2 of 4 slots free, pid 17)".
func (o Offer) String() string {
	return fmt.Sprintf("%s (%d of %d slots free, pid %d)", o.Host, o.Free, o.Slots, o.PID)
}

// names gives each offer a name for placement: its host, with the agent's process where several are on hosts of that name.
func names(offers []Offer) []string {
	count := map[string]int{}
	for _, o := range offers {
		count[o.Host]++
	}
	list := make([]string, len(offers))
	for i, o := range offers {
		list[i] = o.Host
		if count[o.Host] > 1 {
			list[i] = fmt.Sprintf("%s/%d", o.Host, o.PID)
		}
	}
	return list
}

// Slots returns the free slots of offers, for placement.
func Slots(offers []Offer) []launch.Slots {
	slots := make([]launch.Slots, len(offers))
	for i, name := range names(offers) {
		slots[i] = launch.Slots{Host: name, Slots: offers[i].Free}
	}
	return slots
}
