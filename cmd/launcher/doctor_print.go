package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"jacobi/internal/examine"
	"jacobi/internal/roster"
	"jacobi/internal/show"
)

// doctorColumns is the width of a diagnosis.
const doctorColumns = 100

func (d *diagnosis) printJSON(w io.Writer) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return err
	}
	return show.Fprint(w, b.String())
}

// print writes the diagnosis for people.
func (d *diagnosis) print(w io.Writer) error {
	var b bytes.Buffer
	if d.Run != "" {
		paragraph(&b, "", d.Run)
	}
	if d.Expected != "" {
		paragraph(&b, "", d.Expected)
	}
	for _, n := range d.Nodes {
		n.print(&b)
	}
	for _, r := range d.Ranks {
		if rep := r.Report; rep != nil {
			text := fmt.Sprintf("%s on %s, %s", rep.Device, rep.Host, bytesText(rep.MemoryBytes))
			if rep.GPU != nil {
				text += fmt.Sprintf(", %s (%s)", rep.GPU.UUID, rep.GPU.Why)
			}
			if rep.Output != "" {
				text += ", output: " + rep.Output
			}
			paragraph(&b, fmt.Sprintf("rank %d: ", r.Rank), text)
		}
	}
	for _, l := range d.links() {
		paragraph(&b, fmt.Sprintf("ranks %d and %d: ", l.ranks[0], l.ranks[1]), l.Transport+": "+l.Why+l.access)
	}
	places := []*examine.Place{d.Output}
	for _, r := range d.Ranks {
		places = append(places, r.Checkpoints)
	}
	for _, p := range places {
		if p != nil {
			paragraph(&b, p.Key+" "+p.Dir+": ", fmt.Sprintf("on %s, %s needed, %s available", p.Host, bytesText(p.Needed), bytesText(p.Available)))
		}
	}
	for _, f := range d.Warnings {
		f.print(&b, "warning: ")
	}
	for _, f := range d.Faults {
		f.print(&b, "fault: ")
	}
	verdict := "The run would start."
	if !d.Starts {
		verdict = "The run would not start."
	}
	fmt.Fprintln(&b, verdict)
	return show.Fprint(w, b.String())
}

func (f finding) print(b *bytes.Buffer, what string) {
	paragraph(b, what, f.What)
	paragraph(b, "  to do: ", f.Do)
}

func (n *nodeFindings) print(b *bytes.Buffer) {
	paragraph(b, n.Host+": ", strings.Join([]string{
		fmt.Sprintf("%s (%s), version %s", roster.FormatRanks(n.Ranks), n.Reached, n.Version),
		fmt.Sprintf("%d cores for %d threads", n.Cores, n.Threads),
		fmt.Sprintf("memory %s needed, %s available (%s)", bytesText(n.Needed), bytesText(n.MemoryBytes), n.MemoryBound),
		fmt.Sprintf("/dev/shm %s available", bytesText(n.ShmBytes)),
		"locked memory " + limitText(n.LockedBytes, bytesText),
		fmt.Sprintf("%d files open in a rank, limit %s", n.Files, limitText(n.MostFiles, func(n int64) string { return fmt.Sprint(n) })),
		fmt.Sprintf("NATS round trip %v", seconds(n.NATSRoundTrip).Round(time.Microsecond)),
	}, "; "))
	if n.Clock != nil {
		paragraph(b, strings.Repeat(" ", utf8.RuneCountInString(n.Host)+2), clockText(n.Clock))
	}
}

func limitText(n int64, text func(int64) string) string {
	if n == examine.Unlimited {
		return "unlimited"
	}
	return text(n)
}

func clockText(c *examine.Clock) string {
	word := "ahead of"
	if c.Ahead < 0 {
		word = "behind"
	}
	return fmt.Sprintf("its clock is %v %s that of rank 0, give or take %v", seconds(math.Abs(c.Ahead)).Round(time.Microsecond), word,
		seconds(c.Error).Round(time.Microsecond))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// paragraph writes text behind a head, in lines of doctorColumns; a longer word has its line alone. Further lines begin below the text.
func paragraph(b *bytes.Buffer, head, text string) {
	indent := min(utf8.RuneCountInString(head), 16)
	b.WriteString(head)
	at := utf8.RuneCountInString(head)
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > doctorColumns:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	b.WriteByte('\n')
}
