// Package stats has the statistics that each rank publishes while it sweeps, for metrics, the live view, the progress
// bar and launcher --json. reporter.go takes the readings on the ranks.
package stats

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/procfs"
)

// Interval is the time from one message of a rank to the next. GPUs are read less often, since their driver takes
// milliseconds to answer.
const (
	Interval    = time.Second
	GPUInterval = 5 * time.Second
)

// Rank is what a rank tells about once in Interval while it sweeps. Counts and times are totals since the first sweep
// of this start. They never fall.
type Rank struct {
	Host    string `json:"host"`
	Backend string `json:"backend"` // cpu or cuda
	Device  string `json:"device"`  // in words
	Stripe  [2]int `json:"stripe"`  // rows [lo, hi) of the mesh

	Elapsed float64 `json:"elapsed"`         // seconds
	Sweeps  int     `json:"sweeps"`          // done, with those before a restart, and known on all ranks; or cycles
	Start   int     `json:"start,omitempty"` // those before the restart
	Updates float64 `json:"updates"`         // of points of the stripe, since the start

	// HaloWait is the time in seconds in which the host sent rows and waited for rows. It is nil where the GPU itself
	// waits.
	HaloWait *float64 `json:"halo_wait,omitempty"`
	NormWait float64  `json:"norm_wait"` // seconds in which the host posted sums and waited for those of other ranks
	Recent   Recent   `json:"recent"`

	Halos           []Halo       `json:"halos"` // a neighbour each
	RefusedMessages uint64       `json:"refused_messages"`
	Checkpoints     *Checkpoints `json:"checkpoints,omitempty"` // rank 0 of a run that saves its state
	Memory          Memory       `json:"memory"`
	GPU             *GPU         `json:"gpu,omitempty"` // nil where the CPU sweeps, or without NVML
	Final           bool         `json:"final,omitempty"`
}

// Recent are rates since the message before. Those of the final message are of all sweeps of this start.
type Recent struct {
	Seconds  float64  `json:"seconds"`
	GLUPs    float64  `json:"glups"`               // 10^9 updates of points of the stripe a second
	HaloWait *float64 `json:"halo_wait,omitempty"` // share of the time, 0 to 1; nil as in Rank
	NormWait float64  `json:"norm_wait"`           // likewise
}

// Halo is the traffic with one neighbour.
type Halo struct {
	Side      string `json:"side"` // top or bottom
	Neighbour int    `json:"neighbour"`
	Transport string `json:"transport"`
	Sent      uint64 `json:"sent_bytes"` // of rows, before they are packed
	Received  uint64 `json:"received_bytes"`
	// The counts below are of links over NATS and TCP.
	Asked      uint64 `json:"asked"`      // requests for missing rows
	Resent     uint64 `json:"resent"`     // frames sent again
	Duplicates uint64 `json:"duplicates"` // frames received again
	Refused    uint64 `json:"refused"`    // frames that do not belong to the link or were damaged; connections
	Lost       uint64 `json:"lost"`       // frames that the client did not accept or dropped; over TCP, broken sockets
}

// Checkpoints count the states that the run has saved since its start.
type Checkpoints struct {
	Written int     `json:"written"`
	Failed  int     `json:"failed"`
	Sweeps  int     `json:"sweeps"`  // of the newest
	Bytes   int64   `json:"bytes"`   // of the newest
	Seconds float64 `json:"seconds"` // from the copy to the seal of the newest
}

// Memory is in bytes.
type Memory struct {
	Field    int64 `json:"field"`    // in which the rank sweeps, on its device
	Resident int64 `json:"resident"` // of the process
	Peak     int64 `json:"peak"`     // most resident memory so far
}

// GPU are the readings of a rank's GPU. Those that it does not support are nil.
type GPU struct {
	Index       int      `json:"index"`
	Name        string   `json:"name"`
	UUID        string   `json:"uuid"`
	Celsius     *int64   `json:"celsius,omitempty"`
	Milliwatts  *int64   `json:"milliwatts,omitempty"`
	UsedBytes   *int64   `json:"memory_used_bytes,omitempty"` // by all processes and the driver
	SMClock     *int64   `json:"sm_clock_mhz,omitempty"`
	Corrected   *int64   `json:"ecc_corrected,omitempty"` // errors of memory since the driver was loaded
	Uncorrected *int64   `json:"ecc_uncorrected,omitempty"`
	Throttled   []string `json:"clock_limits,omitempty"` // why the clocks are lower than they could be under load
}

// maxBytes bounds a message, and maxHalos its neighbours.
const (
	maxBytes = 64 << 10
	maxHalos = 2
)

// Parse decodes a message of a rank. Numbers that no rank sends are an error. Text may hold anything.
func Parse(data []byte) (Rank, error) {
	var r Rank
	if len(data) > maxBytes {
		return r, fmt.Errorf("statistics of %d bytes: at most %d are allowed", len(data), maxBytes)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("statistics: %w", err)
	}
	numbers := []float64{float64(r.Sweeps), float64(r.Start), float64(r.Stripe[0]), r.Elapsed, r.Updates, r.NormWait,
		r.Recent.Seconds, r.Recent.GLUPs, r.Recent.NormWait}
	for _, n := range []*float64{r.HaloWait, r.Recent.HaloWait} {
		if n != nil {
			numbers = append(numbers, *n)
		}
	}
	for _, n := range numbers {
		if n < 0 || math.IsInf(n, 0) || math.IsNaN(n) {
			return r, errors.New("statistics: a number is negative")
		}
	}
	if len(r.Halos) > maxHalos || r.Stripe[1] < r.Stripe[0] || r.Start > r.Sweeps {
		return r, errors.New("statistics: they contradict themselves")
	}
	return r, nil
}

// lagShare is the part of their time that the other ranks must wait longer than a rank, so that it lags.
const lagShare = 0.2

// Lagging returns the ranks for which the others wait, by index of ranks: those that wait less than half as long as the
// median, and by lagShare of the time less. All ranks do the same sweeps, so a slow rank is one that never waits. A
// rank that is nil has told nothing; without waits of halos (see Rank.HaloWait) nothing is known.
func Lagging(ranks []*Rank) []int {
	var waits []float64
	for _, r := range ranks {
		if r != nil && r.Recent.HaloWait != nil {
			waits = append(waits, r.waits())
		}
	}
	if len(waits) < 2 {
		return nil
	}
	slices.Sort(waits)
	typical := waits[len(waits)/2]
	var lag []int
	for i, r := range ranks {
		if r != nil && r.Recent.HaloWait != nil && r.waits() < typical/2 && typical-r.waits() >= lagShare {
			lag = append(lag, i)
		}
	}
	return lag
}

// waits returns the share of the recent time that the rank has waited.
func (r *Rank) waits() float64 { return *r.Recent.HaloWait + r.Recent.NormWait }

// ResidentMemory returns the bytes of this process that are resident, now and at the peak, as the kernel reports them.
func ResidentMemory() (now, peak int64, err error) {
	self, err := procfs.Self()
	if err != nil {
		return 0, 0, err
	}
	status, err := self.NewStatus()
	if err == nil && status.VmHWM == 0 {
		err = errors.New("/proc/self/status has no VmHWM")
	}
	return int64(status.VmRSS), int64(status.VmHWM), err
}
