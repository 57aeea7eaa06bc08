package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"jacobi/internal/attempt"
	"jacobi/internal/roster"
	"jacobi/internal/style"
)

// Without a bar, the first line of progress comes early and the others at this interval.
const (
	firstLine    = time.Second
	lineInterval = 5 * time.Second
)

// newProgress shows progress on s: as a bar on a terminal, else in lines.
func newProgress(s *screen, maxSweeps int) attempt.Progress {
	switch {
	case s.quiet:
		return noProgress{}
	case s.barred():
		b := newBar(s.stderr, maxSweeps)
		s.show(b)
		return &barProgress{screen: s, bar: b}
	}
	return &lineProgress{say: s.aside, now: time.Now} // the first event is shown at once: it tells that the run began
}

// barred reports whether progress is shown as a bar.
func (s *screen) barred() bool { return !s.quiet && !s.json && style.IsTerminal(s.stderr) }

// lineProgress prints a line every few seconds.
type lineProgress struct {
	say   func(string)
	now   func() time.Time
	next  time.Time    // time of the next line
	last  roster.Event // last progress; Sweeps is 0 before the first
	shown int          // sweeps in the last line
}

func newLineProgress(say func(string), now func() time.Time) *lineProgress {
	return &lineProgress{say: say, now: now, next: now().Add(firstLine)}
}

// Event implements attempt.Progress.
func (p *lineProgress) Event(e roster.Event) {
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

// Close implements attempt.Progress.
func (p *lineProgress) Close() {
	if p.last.Sweeps > p.shown {
		p.show()
	}
}

// barProgress draws a bar on the last line of the terminal.
type barProgress struct {
	screen *screen
	bar    *bar
}

// Event implements attempt.Progress.
func (p *barProgress) Event(e roster.Event) {
	if e.Kind == roster.Progress {
		p.bar.set(e)
	}
}

// Close implements attempt.Progress.
func (p *barProgress) Close() { p.screen.hide() }

// barSteps is the fixed total of a bar. The sweeps of a run cannot be the total because their estimate changes.
const barSteps = 1000

// bar is a progress bar.
type bar struct {
	container *mpb.Progress
	bar       *mpb.Bar
	last      atomic.Pointer[roster.Event]
}

func newBar(terminal io.Writer, maxSweeps int, opts ...mpb.ContainerOption) *bar {
	b := &bar{container: mpb.New(append(opts, mpb.WithOutput(terminal))...)}
	b.last.Store(&roster.Event{MaxSweeps: maxSweeps})
	style := mpb.BarStyle().Lbound("[").Filler("=").Tip(">").Padding(" ").Rbound("]")
	b.bar = b.container.New(barSteps, style,
		mpb.BarWidth(32),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
			e := b.last.Load()
			if e.End == 0 {
				return "    "
			}
			return fmt.Sprintf("%3d%%", int(100*e.Share()))
		})),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
			e := b.last.Load()
			if e.Sweeps == 0 {
				return "starting"
			}
			return besideBar(*e, s.AvailableWidth-minBar)
		})))
	return b
}

// minBar is the least number of columns for the bar itself, with its brackets and spaces.
const minBar = 16

// besideBar describes the progress in at most width columns. If not all parts fit, it drops first the speed, then the
// norm, then the time that is left.
func besideBar(e roster.Event, width int) string {
	count, parts := fmt.Sprintf("%d %s", e.Sweeps, e.Goal()), strings.Split(e.Status(), ", ")
	last := parts[len(parts)-1] // the time that is left, if it is known
	short := fmt.Sprintf("%d/%d", e.Sweeps, cmp.Or(e.End, e.MaxSweeps))
	for _, text := range []string{
		count + ", " + e.Status(), count + ", " + parts[0] + ", " + last, count + ", " + last, count, short,
	} {
		if len(text) <= width {
			return text
		}
	}
	return ""
}

func (b *bar) set(e roster.Event) {
	b.last.Store(&e)
	// At its total the bar would complete itself, but it must stay until close.
	b.bar.SetCurrent(min(int64(e.Share()*barSteps), barSteps-1))
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
