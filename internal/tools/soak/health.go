package soak

import (
	"slices"

	"jacobi/internal/compute/device"
)

// Health are the readings of a GPU over a step: the extremes that tell of trouble. Counts of ECC errors are those since
// the driver was loaded. A reading that the GPU does not support is device.Unknown.
type Health struct {
	Celsius     int      `json:"celsius"`    // the highest
	Milliwatts  int      `json:"milliwatts"` // the highest
	SMClock     int      `json:"sm_mhz"`     // the lowest
	MemoryClock int      `json:"memory_mhz"` // the lowest
	Corrected   int      `json:"ecc_corrected"`
	Uncorrected int      `json:"ecc_uncorrected"`
	Throttled   []string `json:"throttled,omitempty"` // why clocks were lower than they could be
}

// With returns h with one more reading; a nil h has none.
func (h *Health) With(r device.Health) *Health {
	if h == nil {
		return &Health{Celsius: r.Celsius, Milliwatts: r.Milliwatts, SMClock: r.SMClock, MemoryClock: r.MemoryClock,
			Corrected: r.Corrected, Uncorrected: r.Uncorrected, Throttled: slices.Clone(r.Throttled)}
	}
	h.Celsius, h.Milliwatts = max(h.Celsius, r.Celsius), max(h.Milliwatts, r.Milliwatts)
	h.SMClock, h.MemoryClock = min(h.SMClock, r.SMClock), min(h.MemoryClock, r.MemoryClock)
	h.Corrected, h.Uncorrected = max(h.Corrected, r.Corrected), max(h.Uncorrected, r.Uncorrected)
	for _, why := range r.Throttled {
		if !slices.Contains(h.Throttled, why) {
			h.Throttled = append(h.Throttled, why)
		}
	}
	return h
}
