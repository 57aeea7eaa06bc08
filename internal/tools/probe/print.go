package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
	"jacobi/internal/base/style"
	"jacobi/internal/base/version"
)

// Printer prints the reports of a probe: each one as soon as it is there, or all of them at the end as JSON.
type Printer struct {
	Out    io.Writer
	JSON   bool
	Bounds Bounds

	reports []Report
}

// Add takes a report.
func (p *Printer) Add(r Report) error {
	p.reports = append(p.reports, r)
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
		of := look.Red("expected")
		if m.Host != "" {
			of += " " + show.Text(m.Host)
		}
		b.WriteString(of + ": " + show.Text(m.Why) + "\n")
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
	for _, r := range p.reports {
		r.Text = ""
		reports, _ := all[r.Part].([]Report)
		all[r.Part] = append(reports, r)
	}
	return show.JSON(p.Out, all)
}

// maxExpect bounds the size of a file of bounds, in bytes.
const maxExpect = 1 << 20

// Bounds are the bounds of figures by name. A "*" in a name stands for any letters.
type Bounds map[string]Bound

// Bound bounds a figure. In JSON it is a number, the least value, or an object.
type Bound struct {
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bound) UnmarshalJSON(data []byte) error {
	var least float64
	if json.Unmarshal(data, &least) == nil {
		b.Min = &least
		return nil
	}
	type plain Bound // without this method
	var p plain
	if err := json.Unmarshal(data, &p); err != nil || p.Min == nil && p.Max == nil {
		return fmt.Errorf(`%s: must be a number, or {"min": number, "max": number}`, show.Cut(string(data), 40))
	}
	*b = Bound(p)
	return nil
}

// ReadBounds reads a file of bounds.
func ReadBounds(file string) (Bounds, error) {
	data, err := regular.ReadFile(file, maxExpect)
	if err != nil {
		return nil, err
	}
	var b Bounds
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(b) == 0 {
		return nil, fmt.Errorf(`%s: it has no bounds; wanted is {"copies.gpu*.to_device.pinned": 50e9}`, file)
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, err := path.Match(name, ""); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, name, err)
		}
	}
	return b, nil
}

// Miss is a bound that does not hold.
type Miss struct {
	Bound string  `json:"bound"` // its name
	Host  string  `json:"host,omitempty"`
	Why   string  `json:"why"`
	Value float64 `json:"value"`
}

// Check returns the bounds that do not hold, in the order of their names. A bound that no figure meets does not hold.
func (b Bounds) Check(reports []Report) (misses []Miss) {
	for _, name := range slices.Sorted(maps.Keys(b)) {
		met := false
		for _, r := range reports {
			for _, f := range r.Figures {
				if ok, err := path.Match(name, f.Name); err != nil || !ok {
					continue
				}
				met = true
				if why := b[name].broken(f); why != "" {
					misses = append(misses, Miss{Bound: name, Host: r.Host, Value: f.Value, Why: why})
				}
			}
		}
		if !met {
			misses = append(misses, Miss{Bound: name, Why: name + ": no part measured it"})
		}
	}
	return misses
}

// broken says why f is out of bounds; "" if it is not.
func (b Bound) broken(f Figure) string {
	said := func(most string, bound float64) string {
		return fmt.Sprintf("%s is %s, at %s %s was expected", f.Name, inUnit(f.Value, f.Unit), most,
			inUnit(bound, f.Unit))
	}
	if b.Min != nil && !(f.Value >= *b.Min) {
		return said("least", *b.Min)
	} else if b.Max != nil && !(f.Value <= *b.Max) {
		return said("most", *b.Max)
	}
	return ""
}

// ErrFailed reports a probe in which a part failed or a bound did not hold. What was wrong has been printed.
var ErrFailed = errors.New("the probe failed")
