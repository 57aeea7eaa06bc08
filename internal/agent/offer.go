// Package agent starts ranks on nodes where an agent waits for them at a NATS server: the agent, how a launcher finds
// agents, and the way between the two. To users of the nats command an agent is a service like any other.
package agent

import (
	"encoding/json"
	"fmt"

	"jacobi/internal/launch"
	"jacobi/internal/show"
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

// readOffer reads what somebody who may be no agent sent. What is shown of it is visible and short.
func readOffer(data []byte) (o Offer, ok bool) {
	if json.Unmarshal(data, &o) != nil || o.Slots < 1 || o.Free < 0 || o.Free > o.Slots {
		return o, false
	}
	for _, text := range []*string{&o.ID, &o.Host, &o.Version, &o.What} {
		*text = show.Text(*text)
	}
	return o, true
}

// shortID is the least that names show of an agent's id.
const shortID = 8

// Names gives each offer a name of its own: its host and, where several agents are on hosts of that name, as much of
// its id as tells them apart. Process numbers would not do: in containers all agents are process 1.
func Names(offers []Offer) []string {
	list := make([]string, len(offers))
	for i, o := range offers {
		list[i] = o.Host
		most := -1 // digits that the id shares with those of other agents on hosts of that name
		for j, other := range offers {
			if j != i && other.Host == o.Host {
				most = max(most, shared(o.ID, other.ID))
			}
		}
		if most >= 0 {
			list[i] += "/" + o.ID[:min(len(o.ID), max(shortID, most+1))]
		}
	}
	return list
}

// shared returns the length of the prefix that a and b share.
func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// states says of each offer how much is free: "host has 2 of 4 slots free".
func states(offers []Offer) []string {
	list := Names(offers)
	for i, o := range offers {
		list[i] += fmt.Sprintf(" has %d of %d slots free", o.Free, o.Slots)
	}
	return list
}

// Slots returns the free slots of offers, for placement.
func Slots(offers []Offer) []launch.Slots {
	slots := make([]launch.Slots, len(offers))
	for i, name := range Names(offers) {
		slots[i] = launch.Slots{Host: name, Slots: offers[i].Free}
	}
	return slots
}
