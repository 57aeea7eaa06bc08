package main

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"jacobi/internal/net/roster"
)

// studyAt is how far a study is.
type studyAt struct {
	lines, all int
	rate       float64 // runs a second; 0 if it is not known
	left       time.Duration
	amiss      string // how many runs have not done what they were to do; "" for none
}

// share returns the share of the runs that have a line.
func (a studyAt) share() float64 { return float64(a.lines) / float64(a.all) }

// text describes the progress in at most width columns. If not all parts fit, it drops first what went amiss, then the
// speed.
func (a studyAt) text(width int) string {
	count, speed, left := fmt.Sprintf("%d of %d runs", a.lines, a.all), "", ""
	if a.rate > 0 {
		speed = fmt.Sprintf("%.3g runs/s", a.rate)
	}
	if a.left > 0 {
		left = "about " + roster.Coarse(a.left) + " left"
	}
	for _, all := range [][]string{{count, speed, left, a.amiss}, {count, speed, left}, {count, left}, {count}} {
		all = slices.DeleteFunc(all, func(part string) bool { return part == "" })
		if text := strings.Join(all, ", "); len(text) <= width {
			return text
		}
	}
	return ""
}

// studyProgress shows how far a study is: as a bar on a terminal, else in lines.
type studyProgress struct {
	screen *screen
	at     atomic.Pointer[studyAt]
	bar    *bar      // nil without a terminal
	said   time.Time // of the last line
}

func newStudyProgress(s *screen, at studyAt) *studyProgress {
	p := &studyProgress{screen: s, said: time.Now()}
	p.at.Store(&at)
	if s.barred() {
		p.bar = newBar(s.stderr, func() string { return percentOf(p.at.Load().share()) },
			func(width int) string { return p.at.Load().text(width) })
		s.show(p.bar)
	}
	return p
}

// tell shows where the study is now.
func (p *studyProgress) tell(at studyAt) {
	p.at.Store(&at)
	switch now := time.Now(); {
	case p.bar != nil:
		p.bar.fill(at.share())
	case !p.screen.quiet && now.Sub(p.said) >= lineInterval:
		p.said = now
		p.screen.aside(at.text(1 << 10))
	}
}

func (p *studyProgress) close() {
	if p.bar != nil {
		p.screen.hide()
	}
}
