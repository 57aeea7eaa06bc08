package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"jacobi/configs"
	"jacobi/internal/base/style"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/stats"
)

// lineInterval is the time between lines of progress without a bar.
const lineInterval = 5 * time.Second

// newProgress returns what shows progress on s, as attempt.Options.Show does: a bar on a terminal, else lines.
func newProgress(s *screen, c configs.Solver, ranks int) (event func(roster.Event), done func()) {
	switch {
	case s.quiet:
		return nil, nil
	case s.barred():
		b := newRunBar(s.stderr, c, ranks)
		s.show(b.bar)
		return b.event, s.hide
	}
	p := &lineProgress{say: s.aside, now: time.Now}
	return p.event, p.close
}

// barred reports whether progress is shown as a bar.
func (s *screen) barred() bool { return !s.quiet && !s.json && style.IsTerminal(s.stderr) }

// lineProgress prints a line for the first event, which tells that the run began, and then one every lineInterval.
type lineProgress struct {
	say   func(string)
	now   func() time.Time
	next  time.Time    // time of the next line
	last  roster.Event // last progress; Sweeps is 0 before the first
	shown int          // sweeps in the last line
}

func (p *lineProgress) event(e roster.Event) {
	if e.Kind != roster.Progress {
		return
	}
	p.last = e
	if now := p.now(); !now.Before(p.next) {
		p.next = now.Add(lineInterval)
		p.show()
	}
}

func (p *lineProgress) show() {
	p.shown = p.last.Sweeps
	p.say(p.last.Progress())
}

func (p *lineProgress) close() {
	if p.last.Sweeps > p.shown {
		p.show()
	}
}

// barSteps is the fixed total of a bar. The sweeps of a run cannot be the total because their estimate changes.
const barSteps = 1000

// bar is a progress bar.
type bar struct {
	container *mpb.Progress
	bar       *mpb.Bar
}

// newBar returns a bar. percent returns what stands before it, and beside what stands after it in at most width
// columns.
func newBar(terminal io.Writer, percent func() string, beside func(width int) string,
	opts ...mpb.ContainerOption) *bar {
	b := &bar{container: mpb.New(append(opts, mpb.WithOutput(terminal))...)}
	style := mpb.BarStyle().Lbound("[").Filler("=").Tip(">").Padding(" ").Rbound("]")
	b.bar = b.container.New(barSteps, style,
		mpb.BarWidth(32),
		// The terminal may have echoed a key, as in ^C, where the line begins.
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return "\r" + percent() })),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string { return beside(s.AvailableWidth - minBar) })))
	return b
}

// fill fills a share of the bar. At its total the bar would complete itself, but it must stay until close.
func (b *bar) fill(share float64) { b.bar.SetCurrent(min(int64(share*barSteps), barSteps-1)) }

// percentOf returns a share for newBar.
func percentOf(share float64) string { return fmt.Sprintf("%3d%%", int(100*share)) }

// runBar is the progress bar of a run, on the last line of the terminal.
type runBar struct {
	*bar
	tolerance float64
	ranks     []*stats.Rank // what they told last; nil before that
	last      atomic.Pointer[roster.Event]
	lagging   atomic.Pointer[string] // the ranks for which the others wait, in words; "" for none
}

func newRunBar(terminal io.Writer, c configs.Solver, ranks int, opts ...mpb.ContainerOption) *runBar {
	b := &runBar{tolerance: c.Tolerance, ranks: make([]*stats.Rank, ranks)}
	b.last.Store(&roster.Event{MaxSweeps: c.MaxIterations})
	b.setLagging(nil)
	b.bar = newBar(terminal, b.percent, b.beside, opts...)
	return b
}

func (b *runBar) event(e roster.Event) {
	switch e.Kind {
	case roster.Progress:
		b.last.Store(&e)
		b.fill(e.Share())
	case roster.Stats:
		if told, err := stats.Parse(e.Report); err == nil && e.Rank >= 0 && e.Rank < len(b.ranks) {
			b.ranks[e.Rank] = &told
			b.setLagging(stats.Lagging(b.ranks))
		}
	}
}

func (b *runBar) percent() string {
	e := b.last.Load()
	if e.End == 0 {
		return "    "
	}
	return percentOf(e.Share())
}

func (b *runBar) beside(width int) string {
	e := b.last.Load()
	if e.Sweeps == 0 {
		return "starting"
	}
	return besideBar(*e, b.tolerance, *b.lagging.Load(), width)
}

// minBar is the least number of columns for the bar itself, with its brackets and spaces.
const minBar = 16

// besideBar describes the progress in at most width columns. If not all parts fit, it drops first the tolerance, then
// the speed, then the norm, then the time that is left. lagging names ranks that hold up the others; it stays longest.
func besideBar(e roster.Event, tolerance float64, lagging string, width int) string {
	count, parts := fmt.Sprintf("%d %s", e.Sweeps, e.Goal()), strings.Split(e.Status(), ", ")
	norm, rest := parts[0], strings.Join(parts[1:], ", ")
	last := parts[len(parts)-1] // the time that is left, if it is known
	short := fmt.Sprintf("%d/%d", e.Sweeps, cmp.Or(e.End, e.MaxSweeps))
	aim := norm
	if tolerance > 0 {
		aim = fmt.Sprintf("%s to %.0e", norm, tolerance)
	}
	return fitting(width, [][]string{
		{count, aim, rest, lagging}, {count, norm, rest, lagging}, {count, norm, last, lagging}, {count, last, lagging},
		{count, lagging}, {short, lagging}, {count}, {short},
	})
}

// fitting joins the parts, but for empty ones, of the first text that has at most width columns; "" if none does.
func fitting(width int, texts [][]string) string {
	for _, parts := range texts {
		parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
		if text := strings.Join(parts, ", "); len(text) <= width {
			return text
		}
	}
	return ""
}

// setLagging names the ranks for which the others wait.
func (b *runBar) setLagging(ranks []int) {
	text := ""
	if len(ranks) > 0 {
		text = roster.FormatRanks(ranks) + " " + english.PluralWord(len(ranks), "lags", "lag")
	}
	b.lagging.Store(&text)
}

// above writes lines above the bar; false once the bar is closed. "\r" overwrites a ^C that the terminal has echoed.
func (b *bar) above(lines []byte) bool {
	_, err := b.container.Write(append([]byte{'\r'}, lines...))
	return err == nil
}

// close removes the bar; the lines above it stay.
func (b *bar) close() {
	b.bar.Abort(true)
	b.container.Wait()
}
