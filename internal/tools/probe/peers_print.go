package probe

import (
	"encoding/json"
	"fmt"
	"strings"
)

// judge adds figures, pairs without access, and slow pairs.
func (d peersReport) judge(r *Result) {
	var rates, both, waits []float64
	for _, p := range d.Pairs {
		name := fmt.Sprintf("peers.gpu%d.gpu%d", p.From, p.To)
		r.add(p.Rate, "B/s", "%s.rate", name)
		r.add(p.Both, "B/s", "%s.rate_both_ways", name)
		rates, both = append(rates, p.Rate), append(both, p.Both)
		if p.Latency != nil {
			r.add(*p.Latency, "s", "%s.latency", name)
			waits = append(waits, *p.Latency)
		}
		switch {
		case p.Wrong:
			r.find("GPU %d: copies from GPU %d bring other bytes.", p.To, p.From)
		case !p.Access:
			r.find("GPU %d has no access to the memory of GPU %d; copies go through the host.", p.From, p.To)
		}
	}
	for _, p := range d.Pairs {
		if p.Rate < fair*median(rates) {
			r.find("GPU %d sends %s to GPU %d; the median of the pairs is %s.", p.From, rate(p.Rate), p.To,
				rate(median(rates)))
		}
		if p.From < p.To && p.Both < fair*median(both) {
			r.find("GPUs %d and %d exchange %s; the median of the pairs is %s.", p.From, p.To, rate(p.Both),
				rate(median(both)))
		}
		if p.Latency != nil && *p.Latency > 1.5*median(waits) {
			r.find("GPUs %d and %d: a write takes %s; the median of the pairs is %s.", p.From, p.To,
				seconds(*p.Latency), seconds(median(waits)))
		}
	}
}

// text returns the matrices of the part.
func (d peersReport) text() string {
	text := d.Shared.text()
	if len(d.Pairs) == 0 {
		return text
	}
	text += fmt.Sprintf("  copies of %s, a row sends and a column receives\n", size(d.Bytes))
	for _, matrix := range []struct {
		title string
		cell  func(Pair) string
	}{
		{"access", func(p Pair) string { return map[bool]string{true: "yes", false: "no"}[p.Access] }},
		{"GB/s", func(p Pair) string { return digits(p.Rate / 1e9) }},
		{"GB/s both ways", func(p Pair) string { return digits(p.Both / 1e9) }},
		{"write latency", func(p Pair) string {
			if p.Latency == nil {
				return "-"
			}
			return seconds(*p.Latency)
		}},
	} {
		var b strings.Builder
		b.WriteString(matrix.title)
		for _, i := range d.GPUs {
			fmt.Fprintf(&b, "\tGPU %d", i)
		}
		b.WriteString("\n")
		for _, i := range d.GPUs {
			fmt.Fprintf(&b, "GPU %d", i)
			for _, j := range d.GPUs {
				cell := "."
				for _, p := range d.Pairs {
					if p.From == i && p.To == j {
						cell = matrix.cell(p)
					}
				}
				b.WriteString("\t" + cell)
			}
			b.WriteString("\n")
		}
		text += table(b.String())
	}
	return text
}

// drawPeers draws the rates of all pairs as a heat map.
func drawPeers(data []byte) ([]byte, error) {
	var d peersReport
	if err := json.Unmarshal(data, &d); err != nil || len(d.Pairs) == 0 {
		return nil, err
	}
	h := heatMap{title: "Copies between GPUs, GB/s (a row sends, a column receives)"}
	for _, i := range d.GPUs {
		row := []float64{}
		for _, j := range d.GPUs {
			v := 0.0
			for _, p := range d.Pairs {
				if p.From == i && p.To == j {
					v = p.Rate / 1e9
				}
			}
			row = append(row, v)
		}
		h.labels, h.cells = append(h.labels, fmt.Sprintf("GPU %d", i)), append(h.cells, row)
	}
	return h.png()
}
