package probe

import (
	"encoding/json"
	"fmt"

	"jacobi/internal/net/roster"
)

// all names all parts.
const all = "all"

// mostWeight is the largest weight; on an H200, 128 MiB then take about a second.
const mostWeight = 1 << 18

// Request says what to measure.
type Request struct {
	Parts  []Part
	Weight int // of the kernel of the part overlap, see cuda/kernels/probe_chunk.cu; 0: as long as a copy takes
}

// requestWire is the value of roster.EnvProbe.
type requestWire struct {
	Parts  []string `json:"parts"`
	Weight int      `json:"weight,omitempty"`
}

// NewRequest returns a request for the parts with the given names, all parts if there are none or "all" is among them.
func NewRequest(names []string, weight int) (Request, error) {
	if len(names) == 1 && names[0] == all {
		names = nil
	}
	parts, err := choose(names)
	if err == nil && (weight < 0 || weight > mostWeight) {
		err = fmt.Errorf("--weight %d: allowed are 1 to %d, and 0 for as long as a copy takes", weight, mostWeight)
	}
	return Request{parts, weight}, err
}

// ParseRequest parses the value of roster.EnvProbe.
func ParseRequest(text string) (Request, error) {
	var w requestWire
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return Request{}, fmt.Errorf("%s: %w", roster.EnvProbe, err)
	}
	r, err := NewRequest(w.Parts, w.Weight)
	if err != nil {
		return r, fmt.Errorf("%s: %w", roster.EnvProbe, err)
	}
	return r, nil
}

// String returns the request as the value of roster.EnvProbe.
func (r Request) String() string {
	w := requestWire{Weight: r.Weight}
	for _, p := range r.Parts {
		w.Parts = append(w.Parts, p.Name)
	}
	text, err := json.Marshal(w)
	if err != nil { // strings and a number always have JSON
		return ""
	}
	return string(text)
}
