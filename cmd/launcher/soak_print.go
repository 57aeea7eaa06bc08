package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"jacobi/internal/net/roster"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
	"jacobi/internal/tools/soak"
)

// soakProgress shows what the ranks of a soak report: differences at once, other lines every few seconds, and with
// --json every event.
type soakProgress struct {
	screen *screen
	lines  io.Writer // standard output, for --json; nil for none
	both   bool      // a round has two steps
	seen   soak.Total
	next   time.Time // of the next line
	unread bool      // devices without readings have been named
	broken error     // a line of JSON that could not be written
}

func newSoakProgress(scr *screen, asJSON, both bool) *soakProgress {
	p := &soakProgress{screen: scr, both: both}
	if asJSON {
		p.lines = scr.data
	}
	return p
}

// Event implements attempt.Progress.
func (p *soakProgress) Event(e roster.Event) {
	var s soak.Event
	if e.Kind != roster.Soaked || json.Unmarshal(e.Report, &s) != nil {
		return
	}
	p.line(s)
	switch {
	case s.Reference != nil:
		p.screen.Say(s.Reference.String())
	case s.Working != nil:
		p.say(s.Working.String())
	case s.Step != nil:
		p.step(*s.Step)
	}
}

func (p *soakProgress) step(s soak.Step) {
	if text := s.Unread(); text != "" && !p.unread {
		p.unread = true
		p.screen.Say(text)
	}
	found := p.seen.Add(s, p.both)
	for _, d := range found {
		p.screen.fail(d.String())
	}
	p.say(s.String())
}

// say shows a line if the last one is some seconds old.
func (p *soakProgress) say(text string) {
	if now := time.Now(); !now.Before(p.next) {
		p.next = now.Add(lineInterval)
		p.screen.Say(text)
	}
}

// line prints an event as a line of JSON.
func (p *soakProgress) line(s soak.Event) {
	if p.lines == nil || p.broken != nil {
		return
	}
	data, err := json.Marshal(s)
	if err == nil {
		_, err = p.lines.Write(append(data, '\n'))
	}
	p.broken = err
}

// Close implements attempt.Progress.
func (p *soakProgress) Close() {}

// conclude prints the total and returns the exit code as an error. The total that rank 0 sends counts; if a rank has
// failed, it is what this launcher has seen.
func (p *soakProgress) conclude(end attempt.Ended) error {
	total := p.seen
	var last soak.Event
	switch {
	case end.Err != nil:
		p.screen.fail(end.Err.Error())
	case end.Killed():
		p.screen.fail("the ranks were killed")
	case json.Unmarshal(end.Report, &last) != nil || last.End == nil:
		p.screen.fail("the ranks ended well, but their total is lost")
		return launch.ExitError{Code: launch.ExitFailed}
	default:
		total = *last.End
	}
	p.line(soak.Event{Event: "end", End: &total})
	if p.broken != nil {
		return fmt.Errorf("print an event: %w", p.broken)
	}
	if p.lines == nil {
		if _, err := fmt.Fprintln(p.screen.stdout, total); err != nil {
			return fmt.Errorf("print the total: %w", err)
		}
	}
	if total.Differing > 0 {
		return launch.ExitError{Code: launch.ExitFailed}
	}
	return exit(end.ExitCode())
}
