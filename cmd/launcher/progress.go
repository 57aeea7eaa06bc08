package main

import (
	"time"

	"jacobi/configs"
	"jacobi/internal/base/style"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/stats"
	"jacobi/internal/run/attempt"
)

// lineInterval is the time between lines of progress without a bar.
const lineInterval = 5 * time.Second

// newProgress shows progress on s: as a bar on a terminal, else in lines.
func newProgress(s *screen, c configs.Solver, ranks int) attempt.Progress {
	switch {
	case s.quiet:
		return noProgress{}
	case s.barred():
		b := newRunBar(s.stderr, c)
		s.show(b.bar)
		return &barProgress{screen: s, bar: b, ranks: make([]*stats.Rank, ranks)}
	}
	return newLineProgress(s.aside, time.Now)
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

func newLineProgress(say func(string), now func() time.Time) *lineProgress {
	return &lineProgress{say: say, now: now}
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
