// Tracedraw draws a part of a trace as SVG, for documents: of each rank its links and the goroutine that sweeps, with
// the rows that go from rank to rank.
//
//	go run ./internal/trace/tracedraw trace.json 200ms 450ms >trace.svg
package main

import (
	"bufio"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"slices"
	"time"

	"jacobi/internal/trace/traceread"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tracedraw:", err)
		os.Exit(1)
	}
}

func run(args []string, to io.Writer) error {
	if len(args) != 3 {
		return errors.New("a file, a beginning and an end are wanted, such as trace.json 200ms 450ms")
	}
	from, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	until, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	if until <= from {
		return fmt.Errorf("%v is not after %v", until, from)
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	t, err := traceread.Read(bufio.NewReader(f))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return draw(to, t, from, until)
}

// Lengths in pixels.
const (
	width      = 1080
	left       = 24
	top        = 44
	linkHeight = 9
	mainHeight = 30
	rankHeight = 22 + 2*linkHeight + mainHeight + 14 // with the name above and a gap below
	tickRoom   = 26
)

// colours are those of categories, in the order of the legend.
var colours = []struct{ category, colour string }{
	{"compute", "#4c8bc4"}, {"halo_wait", "#f0a63c"}, {"norm_wait", "#d65f5f"}, {"save", "#9467bd"},
	{"sample", "#bc8f5f"}, {"output", "#6aa56a"}, {"link", "#b5b5b5"},
}

// picture draws slices between two times.
type picture struct {
	to          *bufio.Writer
	from, until time.Duration
}

// x returns the place of a time.
func (p *picture) x(at time.Duration) float64 {
	at = min(max(at, p.from), p.until)
	return left + (width-2*left)*float64(at-p.from)/float64(p.until-p.from)
}

// shows reports whether a slice is within the picture.
func (p *picture) shows(s traceread.Slice) bool { return s.Start < p.until && s.Start+s.Took > p.from }

// laneOf returns the top of a rank's track and its height.
func laneOf(rank int, track string, links [2]string) (y, height float64) {
	y = top + float64(rank)*rankHeight + 22
	switch track {
	case links[0]:
		return y, linkHeight
	case links[1]:
		return y + linkHeight + mainHeight, linkHeight
	}
	return y + linkHeight, mainHeight
}

// linksOf returns the names of a rank's tracks for the links at its top and its bottom.
func linksOf(t traceread.Trace, rank int) (links [2]string) {
	n := len(t.Ranks)
	return [2]string{fmt.Sprintf("link to rank %d (top)", (rank+n-1)%n),
		fmt.Sprintf("link to rank %d (bottom)", (rank+1)%n)}
}

// draw writes the SVG.
func draw(to io.Writer, t traceread.Trace, from, until time.Duration) error {
	p := &picture{bufio.NewWriter(to), from, until}
	height := top + len(t.Ranks)*rankHeight + tickRoom
	fmt.Fprintf(p.to, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" `+
		`font-size="12"><rect width="100%%" height="100%%" fill="white"/>`+"\n", width, height)
	p.legend(t)
	for rank, r := range t.Ranks {
		links := linksOf(t, rank)
		for _, track := range []string{links[0], "solver", links[1]} {
			y, h := laneOf(rank, track, links)
			for _, s := range r.Tracks[track] {
				if p.shows(s) {
					p.slice(s, y, h)
				}
			}
		}
	}
	p.arrows(t)
	for rank, r := range t.Ranks {
		fmt.Fprintf(p.to, `<text x="%d" y="%d" font-weight="bold" paint-order="stroke" stroke="white" `+
			`stroke-width="4">%s</text>`+"\n", left, top+rank*rankHeight+17, html.EscapeString(r.Name))
	}
	p.ticks(float64(height - tickRoom))
	fmt.Fprintln(p.to, "</svg>")
	return p.to.Flush()
}

// has reports whether the picture shows slices of a category.
func (p *picture) has(t traceread.Trace, category string) bool {
	for _, r := range t.Ranks {
		for _, track := range r.Tracks {
			if slices.ContainsFunc(track, func(s traceread.Slice) bool {
				return s.Category == category && p.shows(s)
			}) {
				return true
			}
		}
	}
	return false
}

// legend names the colours.
func (p *picture) legend(t traceread.Trace) {
	x := left
	for _, c := range colours {
		if !p.has(t, c.category) {
			continue
		}
		fmt.Fprintf(p.to, `<rect x="%d" y="14" width="12" height="12" fill="%s"/><text x="%d" y="24">%s</text>`+"\n", x,
			c.colour, x+17, c.category)
		x += 40 + 7*len(c.category)
	}
	fmt.Fprintf(p.to, `<path d="M%d 20h24" stroke="#333"/><text x="%d" y="24">rows</text>`+"\n", x, x+30)
}

// slice draws a slice. One that encloses others is an outline.
func (p *picture) slice(s traceread.Slice, y, height float64) {
	x, w := p.x(s.Start), p.x(s.Start+s.Took)-p.x(s.Start)
	if s.Category == "pass" {
		fmt.Fprintf(p.to, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="none" stroke="#333"/>`, x, y, w,
			height)
		if w > 60 {
			fmt.Fprintf(p.to, `<text x="%.1f" y="%.1f" font-size="10">%s %d</text>`+"\n", x+3, y+11,
				html.EscapeString(s.Name), s.Args[s.Name])
		}
		return
	}
	if w < 0.3 {
		return
	}
	for _, c := range colours {
		if c.category != s.Category {
			continue
		}
		if s.Category != "link" { // the name of the pass stands above
			y, height = y+14, height-14
		}
		fmt.Fprintf(p.to, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, x, y, w, height, c.colour)
		if s.Category != "link" && w > float64(10+6*len(s.Name)) {
			fmt.Fprintf(p.to, `<text x="%.1f" y="%.1f" font-size="10">%s</text>`, x+3, y+12, html.EscapeString(s.Name))
		}
		fmt.Fprintln(p.to)
	}
}

// arrows draws rows that travel between neighbouring ranks. Those between the last rank and the first one would cross
// the picture.
func (p *picture) arrows(t traceread.Trace) {
	for _, a := range t.Arrows {
		end := a.To.Start + a.To.Took
		around := len(t.Ranks) == 2 && a.FromTrack != linksOf(t, a.FromRank)[a.ToRank]
		if d := a.FromRank - a.ToRank; d*d != 1 || around || a.From.Start < p.from || end > p.until {
			continue
		}
		y1, h1 := laneOf(a.FromRank, a.FromTrack, linksOf(t, a.FromRank))
		y2, h2 := laneOf(a.ToRank, a.ToTrack, linksOf(t, a.ToRank))
		fmt.Fprintf(p.to, `<path d="M%.1f %.1fL%.1f %.1f" stroke="#333" stroke-width=".7"/>`+
			`<circle cx="%.1f" cy="%.1f" r="2" fill="#333"/>`+"\n",
			p.x(a.From.Start), y1+h1/2, p.x(end), y2+h2/2, p.x(end), y2+h2/2)
	}
}

// ticks draws the axis of time.
func (p *picture) ticks(y float64) {
	step := time.Duration(1)
	for _, f := range []time.Duration{2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000,
		1000000, 10000000} {
		if step = f * time.Microsecond; (p.until-p.from)/step <= 12 {
			break
		}
	}
	for at := (p.from + step - 1) / step * step; at <= p.until; at += step {
		fmt.Fprintf(p.to, `<path d="M%.1f %dV%.1f" stroke="#999" stroke-width=".5" stroke-dasharray="2 3"/>`+
			`<text x="%.1f" y="%.1f" text-anchor="middle" fill="#555">%v</text>`+"\n",
			p.x(at), top, y, p.x(at), y+16, at)
	}
}
