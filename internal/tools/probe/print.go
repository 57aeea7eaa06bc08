package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"jacobi/internal/base/show"
	"jacobi/internal/base/style"
	"jacobi/internal/base/version"
)

// Printer prints the reports of a probe: each one as soon as it is there, or all of them at the end as JSON.
type Printer struct {
	Out      io.Writer
	JSON     bool
	Bounds   Bounds
	Pictures string // directory; "" for no pictures

	reports []Report
}

// Check returns an error if the pictures cannot be written.
func (p *Printer) Check() error {
	if p.Pictures == "" {
		return nil
	}
	if err := os.MkdirAll(p.Pictures, 0o755); err != nil {
		return fmt.Errorf("--pictures: %w", err)
	}
	return nil
}

// Add takes a report.
func (p *Printer) Add(r Report) error {
	p.reports = append(p.reports, r)
	if err := p.draw(r); err != nil {
		return err
	}
	if p.JSON || r.Text == "" && r.NotRun == "" && r.Fault == "" {
		return nil
	}
	look := style.Of(p.Out)
	text := look.Bold(show.Text(r.Part)+" on "+show.Text(r.Host)) + fmt.Sprintf(" (%s)\n", seconds(r.Seconds)) +
		show.Lines(r.Text)
	if r.NotRun != "" {
		text += "  not run: " + show.Text(r.NotRun) + "\n"
	}
	if r.Fault != "" {
		text += look.Red("  failed: ") + show.Lines(r.Fault) + "\n"
	}
	_, err := io.WriteString(p.Out, text+"\n")
	return err
}

// draw writes the picture of a report.
func (p *Printer) draw(r Report) error {
	i := slices.IndexFunc(Parts(), func(part Part) bool { return part.Name == r.Part })
	if p.Pictures == "" || r.Data == nil || i < 0 || Parts()[i].Draw == nil {
		return nil
	}
	var tables []Table
	if err := json.Unmarshal(r.Data, &tables); err != nil {
		return fmt.Errorf("draw %s on %s: %w", r.Part, r.Host, err)
	}
	png, err := Parts()[i].Draw(tables)
	if err != nil {
		return fmt.Errorf("draw %s on %s: %w", r.Part, r.Host, err)
	}
	if png == nil {
		return nil
	}
	host := strings.Map(func(c rune) rune {
		if c == '/' || c == 0 {
			return '_'
		}
		return c
	}, r.Host)
	path := filepath.Join(p.Pictures, fmt.Sprintf("probe-%s-%s.png", r.Part, host))
	return renameio.WriteFile(path, png, 0o666, renameio.WithTempDir(p.Pictures))
}

// Reports returns how many reports were added.
func (p *Printer) Reports() int { return len(p.reports) }

// Finish prints the summary, or everything as JSON. It returns ErrFailed if a part failed or a bound does not hold.
func (p *Printer) Finish() error {
	misses := p.Bounds.Check(p.reports)
	print := p.summary
	if p.JSON {
		print = p.object
	}
	if err := print(misses); err != nil {
		return err
	}
	if len(misses) > 0 || slices.ContainsFunc(p.reports, func(r Report) bool { return r.Fault != "" }) {
		return ErrFailed
	}
	return nil
}

// finding is a finding of a node.
type finding struct {
	Part string `json:"part"`
	Host string `json:"host"`
	Text string `json:"text"`
}

func (p *Printer) findings() []finding {
	all := []finding{}
	for _, r := range p.reports {
		for _, text := range r.Findings {
			all = append(all, finding{r.Part, r.Host, text})
		}
	}
	return all
}

// summary prints in words what is slow, what is missing and which bounds do not hold.
func (p *Printer) summary(misses []Miss) error {
	var b bytes.Buffer
	look := style.Of(p.Out)
	for _, f := range p.findings() {
		fmt.Fprintf(&b, "%s %s: %s\n", look.Yellow(f.Part), show.Text(f.Host), show.Text(f.Text))
	}
	if b.Len() == 0 {
		b.WriteString("Nothing is slow against its peers, and nothing that was measured is missing.\n")
	}
	for _, m := range misses {
		b.WriteString(look.Red("expected") + " " + show.Text(strings.TrimSpace(m.Host+": "+m.Why)) + "\n")
	}
	switch {
	case len(misses) > 0:
		fmt.Fprintf(&b, "%d of what was expected did not hold.\n", len(misses))
	case len(p.Bounds) > 0:
		b.WriteString("Everything is as expected.\n")
	}
	_, err := p.Out.Write(b.Bytes())
	return err
}

// object prints one JSON object with a key for each part, which holds the reports of all nodes.
func (p *Printer) object(misses []Miss) error {
	all := map[string]any{"version": version.String(), "findings": p.findings()}
	if p.Bounds != nil {
		all["unexpected"] = append([]Miss{}, misses...)
	}
	byPart := map[string][]Report{}
	for _, r := range p.reports {
		r.Text = ""
		byPart[r.Part] = append(byPart[r.Part], r)
	}
	for name, reports := range byPart {
		all[name] = reports
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(all); err != nil {
		return err
	}
	return show.Fprint(p.Out, b.String())
}
