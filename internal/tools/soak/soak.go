// Package soak is what launcher soak and its ranks tell each other: the order of the launcher, the results of each
// step, and their total. The ranks do the work (internal/tools/tasks/soak.go).
package soak

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"jacobi/internal/compute/device"
)

// Order says what the ranks shall do.
type Order struct {
	For         time.Duration `json:"for"` // from the first round on; at least one round is complete
	StopOnError bool          `json:"stop_on_error,omitempty"`
	Flip        *Flip         `json:"flip,omitempty"`
}

// Flip orders a fault, to show that it is found: one rank begins one round with one wrong bit in its field, in the
// middle of a row.
type Flip struct {
	Rank  int `json:"rank"`
	Round int `json:"round"` // from 1
	Row   int `json:"row"`
}

// ParseFlip reads a Flip written as rank=1,round=2,row=50.
func ParseFlip(text string) (*Flip, error) {
	f := &Flip{Rank: -1, Round: -1, Row: -1}
	into := map[string]*int{"rank": &f.Rank, "round": &f.Round, "row": &f.Row}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(value)
		if into[name] == nil || *into[name] >= 0 || err != nil || n < 0 {
			return nil, errFlip
		}
		*into[name] = n
	}
	if f.Rank < 0 || f.Round < 1 || f.Row < 0 {
		return nil, errFlip
	}
	return f, nil
}

var errFlip = errors.New("must be rank=R,round=N,row=Y, with R and Y from 0 and N from 1")

// Kind is the kind of a step.
type Kind string

// The kinds. A round is one step of each; with one rank it is one step alone.
const (
	Alone Kind = "alone" // every rank sweeps the whole mesh
	Ring  Kind = "ring"  // all ranks sweep the mesh together, one stripe each
)

// Event is what the ranks tell the launcher: one of its parts is set.
type Event struct {
	Event     string     `json:"event"` // the name of the part: reference, working, step or end
	Reference *Reference `json:"reference,omitempty"`
	Working   *Working   `json:"working,omitempty"`
	Step      *Step      `json:"step,omitempty"`
	End       *Total     `json:"end,omitempty"`
}

// Reference describes the field with which all others are compared.
type Reference struct {
	Host      string  `json:"host"` // whose CPU has computed it
	Sweeps    int     `json:"sweeps"`
	Seconds   float64 `json:"seconds"`
	FieldHash string  `json:"field_hash"` // as in the report of a run
}

// Working says how far rank 0 is in a step that takes long. Round 0 is the reference.
type Working struct {
	Round  int  `json:"round"`
	Kind   Kind `json:"kind,omitempty"`
	Sweeps int  `json:"sweeps"`
	Of     int  `json:"of"`
}

// Step is the result of a step on all ranks.
type Step struct {
	Round   int     `json:"round"` // from 1
	Kind    Kind    `json:"kind"`
	Sweeps  int     `json:"sweeps"`  // of the mesh, by each rank or by all together
	Elapsed float64 `json:"elapsed"` // seconds since the first round began
	Ranks   []Rank  `json:"ranks"`
}

// Rank is the result of a step on one rank.
type Rank struct {
	Device
	Seconds float64 `json:"seconds"` // of the sweeps
	Rows    int     `json:"rows"`    // compared
	Bits    int64   `json:"bits"`    // compared
	SHA256  string  `json:"sha256"`  // of the SHA-256s of the rows, in order
	Differ  []Range `json:"differ,omitempty"`
	Health  *Health `json:"health,omitempty"` // nil without readings
	Stop    bool    `json:"stop,omitempty"`   // the rank was told to stop; Rows is 0 if it gave the step up
}

// Device is a rank and its device.
type Device struct {
	Rank     int    `json:"rank"`
	Host     string `json:"host"`
	Device   string `json:"device"`
	UUID     string `json:"uuid,omitempty"` // of a GPU
	PCIBusID string `json:"pci,omitempty"`  // of a GPU
	Unread   string `json:"unread,omitempty"`
}

// Total adds up the steps of a soak.
type Total struct {
	Rounds  int     `json:"rounds"` // complete ones
	Steps   int     `json:"steps"`
	Devices int     `json:"devices"`
	Sweeps  int64   `json:"sweeps"` // of the whole mesh, over all devices
	Bits    int64   `json:"bits_compared"`
	Seconds float64 `json:"seconds"`
	// Differing counts the results with a wrong row: one rank in one step counts once. Differences has the first ones.
	Differing   int          `json:"differing"`
	Differences []Difference `json:"differences,omitempty"`
	// Suspect is set if all devices have the same bits, and these are not those of the reference.
	Suspect string `json:"suspect,omitempty"`
}

// Difference is a result that differs from the reference.
type Difference struct {
	Device
	Round int     `json:"round"`
	Kind  Kind    `json:"kind"`
	Rows  []Range `json:"rows"`
	Of    int     `json:"of"` // rows compared
}

// maxDifferences bounds Total.Differences.
const maxDifferences = 100

// Add adds a step that all ranks have ended. both says that a round has two steps. It returns the differences.
func (t *Total) Add(s Step, both bool) (found []Difference) {
	t.Devices, t.Seconds = len(s.Ranks), s.Elapsed
	complete, alike := true, len(s.Ranks) > 1 && s.Kind == Alone
	for _, r := range s.Ranks {
		if r.Rows == 0 {
			complete = false
			continue
		}
		t.Bits += r.Bits
		alike = alike && len(r.Differ) > 0 && r.SHA256 == s.Ranks[0].SHA256
		if s.Kind == Alone {
			t.Sweeps += int64(s.Sweeps)
		}
		if len(r.Differ) > 0 {
			found = append(found,
				Difference{Device: r.Device, Round: s.Round, Kind: s.Kind, Rows: r.Differ, Of: r.Rows})
		}
	}
	if !complete {
		alike = false
	} else {
		t.Steps++
		if s.Kind == Ring {
			t.Sweeps += int64(s.Sweeps)
		}
		if s.Kind == Ring || !both {
			t.Rounds++
		}
	}
	if alike {
		t.Suspect = "the CPU that computed the reference"
	}
	t.Differing += len(found)
	t.Differences = append(t.Differences, found[:min(len(found), maxDifferences-len(t.Differences))]...)
	return found
}

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

// Range is rows [Lo, Hi).
type Range struct {
	Lo int `json:"lo"`
	Hi int `json:"hi"`
}

// maxRanges bounds the ranges of rows that a rank reports, so that a message stays small however many rows differ.
const maxRanges = 32

// Collect adds row, which is above all rows added before. Beyond maxRanges it extends the last range over rows that
// agree.
func Collect(ranges []Range, row int) []Range {
	if n := len(ranges); n > 0 && (ranges[n-1].Hi == row || n == maxRanges) {
		ranges[n-1].Hi = row + 1
		return ranges
	}
	return append(ranges, Range{row, row + 1})
}

// FormatRows formats ranges as "row 7" or "rows 3-5, 9", and returns their number of rows.
func FormatRows(ranges []Range) (text string, rows int) {
	var parts []string
	for _, r := range ranges {
		rows += r.Hi - r.Lo
		if r.Hi-r.Lo == 1 {
			parts = append(parts, fmt.Sprint(r.Lo))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", r.Lo, r.Hi-1))
		}
	}
	return english.PluralWord(rows, "row", "") + " " + strings.Join(parts, ", "), rows
}

// String describes the device of a rank.
func (d Device) String() string {
	text := fmt.Sprintf("rank %d on %s: %s", d.Rank, d.Host, d.Device)
	if d.UUID != "" {
		text += fmt.Sprintf(" (%s at PCI %s)", d.UUID, d.PCIBusID)
	}
	return text
}

// String describes a difference in one line.
func (d Difference) String() string {
	text, rows := FormatRows(d.Rows)
	return fmt.Sprintf("round %d, %s: WRONG BITS in %s (%d of %d) of %v", d.Round, d.Kind, text, rows, d.Of, d.Device)
}

// String describes the reference in one line.
func (r Reference) String() string {
	return fmt.Sprintf("reference: %s by the CPU of %s in %s; SHA-256 of the field %s",
		english.Plural(r.Sweeps, "sweep", ""), r.Host, seconds(r.Seconds), r.FieldHash)
}

// String describes in one line how far rank 0 is.
func (w Working) String() string {
	name := "reference"
	if w.Round > 0 {
		name = fmt.Sprintf("round %d, %s", w.Round, w.Kind)
	}
	return fmt.Sprintf("%s: %d of %s", name, w.Sweeps, english.Plural(w.Of, "sweep", ""))
}

// String describes a step in one line: how many results agree, and the readings of the GPUs.
func (s Step) String() string {
	agree, took := 0, 0.0
	for _, r := range s.Ranks {
		if r.Rows > 0 && len(r.Differ) == 0 {
			agree++
		}
		took = max(took, r.Seconds)
	}
	text := fmt.Sprintf("round %d, %s: %d of %s agree, %s in %s", s.Round, s.Kind, agree,
		english.Plural(len(s.Ranks), "device", ""), english.Plural(s.Sweeps, "sweep", ""), seconds(took))
	for _, part := range readings(s.Ranks) {
		text += "; " + part
	}
	return text
}

// readings sums the readings of all ranks up: least and greatest of each, and which GPUs are throttled.
func readings(ranks []Rank) (parts []string) {
	span := func(unit string, of func(Health) int) {
		var values []int
		for _, r := range ranks {
			if r.Health != nil && of(*r.Health) >= 0 {
				values = append(values, of(*r.Health))
			}
		}
		if len(values) == 0 {
			return
		}
		lo, hi := slices.Min(values), slices.Max(values)
		if lo == hi {
			parts = append(parts, fmt.Sprintf("%d %s", lo, unit))
		} else {
			parts = append(parts, fmt.Sprintf("%d to %d %s", lo, hi, unit))
		}
	}
	span("C", func(h Health) int { return h.Celsius })
	span("W", func(h Health) int { return (h.Milliwatts + 500) / 1000 })
	span("MHz", func(h Health) int { return h.SMClock })
	span("ECC errors corrected", func(h Health) int { return h.Corrected })
	span("ECC errors uncorrected", func(h Health) int { return h.Uncorrected })
	var slow []string
	for _, r := range ranks {
		if r.Health != nil && len(r.Health.Throttled) > 0 {
			slow = append(slow, fmt.Sprintf("rank %d by %s", r.Rank, strings.Join(r.Health.Throttled, ", ")))
		}
	}
	if len(slow) > 0 {
		parts = append(parts, "throttled: "+strings.Join(slow, "; "))
	}
	return parts
}

// Unread names the ranks without readings, in one line; "" if there are none.
func (s Step) Unread() string {
	by := map[string][]string{}
	var order []string
	for _, r := range s.Ranks {
		if r.Unread == "" {
			continue
		}
		if by[r.Unread] == nil {
			order = append(order, r.Unread)
		}
		by[r.Unread] = append(by[r.Unread], fmt.Sprint(r.Rank))
	}
	for i, why := range order {
		order[i] = fmt.Sprintf("%s %s: %s", english.PluralWord(len(by[why]), "rank", ""),
			strings.Join(by[why], ", "), why)
	}
	if len(order) == 0 {
		return ""
	}
	return "no readings of temperature, power, clocks and ECC errors: " + strings.Join(order, "; ")
}

// String sums the soak up in one line.
func (t Total) String() string {
	if t.Bits == 0 {
		return "no bits were compared: the soak ended before its first step"
	}
	text := fmt.Sprintf("%s of %s: %s and %s sweeps in %s, %s bits compared", english.Plural(t.Rounds, "round", ""),
		english.Plural(t.Devices, "device", ""), english.Plural(t.Steps, "step", ""), humanize.Comma(t.Sweeps),
		seconds(t.Seconds), humanize.Comma(t.Bits))
	if t.Differing == 0 {
		return text + ", none differs"
	}
	text += fmt.Sprintf("; WRONG BITS in %s", english.Plural(t.Differing, "result", ""))
	if t.Suspect != "" {
		text += "; all devices agree with each other, so suspect " + t.Suspect
	}
	return text
}

// seconds formats a time for people.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
