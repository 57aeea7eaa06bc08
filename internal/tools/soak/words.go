package soak

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

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
	rows := 0
	for _, r := range d.Rows {
		rows += r.Hi - r.Lo
	}
	return fmt.Sprintf("round %d, %s: WRONG BITS in %s (%d of %d) of %v", d.Round, d.Kind, FormatRows(d.Rows), rows,
		d.Of, d.Device)
}

// String describes the reference in one line.
func (r Reference) String() string {
	return fmt.Sprintf("reference: %s by the CPU of %s in %s; SHA-256 of the field %s",
		english.Plural(r.Sweeps, "sweep", ""), r.Host, seconds(r.Seconds), r.FieldSHA256)
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
	switch {
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
