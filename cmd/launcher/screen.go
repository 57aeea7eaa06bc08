package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"

	"go.uber.org/zap/zapcore"

	"jacobi/internal/base/logging"
	"jacobi/internal/base/show"
	"jacobi/internal/base/style"
	"jacobi/internal/observe/events"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/launch"
)

// screen shows lines of the ranks and of the launcher, each one whole and with control characters escaped. While a
// progress bar is shown, lines on the same terminal appear above it.
type screen struct {
	look
	stdout, stderr io.Writer
	events         *events.Writer // of --json; nil without it
	data           io.Writer      // standard output for the file that a run writes there
	sameTerminal   bool           // both stdout and stderr are terminals

	mu      sync.Mutex
	buf     []byte
	bar     *bar // nil if there is none
	noticed map[string]bool
	onWarn  func(text string) // gets warnings and restarts, too; nil if nobody else wants them
}

// look is the style of lines.
type look struct {
	tag   launch.Tag // of lines of ranks
	json  bool       // each line is a JSON log entry, without a tag
	quiet bool       // the launcher shows failures only
	long  bool       // the summary has all that is known
}

func newScreen(stdout, stderr io.Writer, l look) *screen {
	return &screen{
		look: l, stdout: stdout, stderr: stderr, data: stdout,
		sameTerminal: style.IsTerminal(stdout) && style.IsTerminal(stderr),
	}
}

// onStderr returns a screen that shows all lines on standard error, so that standard output holds only data.
func (s *screen) onStderr() *screen {
	on := newScreen(s.stderr, s.stderr, s.look)
	on.data, on.events = s.data, s.events
	return on
}

// RankLine shows a line of a rank.
func (s *screen) RankLine(rank int, from launch.Stream, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.json:
		s.buf = s.tag.Append(s.buf[:0], rank, from, show.AppendLines(nil, line))
		if width := style.Of(s.stderr).Width; width > 0 {
			s.buf = append([]byte(style.Fold(strings.TrimSuffix(string(s.buf), "\n"), width)), '\n')
		}
	case logging.IsLine(line, rank):
		s.buf = append(append(s.buf[:0], line...), '\n')
	default:
		s.buf = logging.Line(levelOf(from, line), rank, show.Lines(string(line)))
	}
	s.write(from, s.buf)
}

// levelOf returns the log level for a line that a rank printed without its logger.
func levelOf(from launch.Stream, line []byte) zapcore.Level {
	switch {
	case from == launch.Stdout:
		return zapcore.InfoLevel
	case bytes.HasPrefix(line, []byte(launch.RankBinary+": ")): // its final message
		return zapcore.ErrorLevel
	}
	return zapcore.WarnLevel
}

// Say shows a line of the launcher.
func (s *screen) Say(text string) { s.tell(zapcore.InfoLevel, "", text) }

// unbroken returns a command for a line of the launcher, which leaves it on one line: it can be copied then.
func unbroken(text string) string { return strings.ReplaceAll(text, " ", noBreak) }

// noBreak stands for a space at which a line is not broken.
const noBreak = "\x00"

// Notice shows a line only once, although each run of a command may repeat it.
func (s *screen) Notice(text string) {
	if s.first(text) {
		s.Say(text)
	}
}

// first reports whether a line has not been shown yet.
func (s *screen) first(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := s.noticed[text]
	if s.noticed == nil {
		s.noticed = map[string]bool{}
	}
	s.noticed[text] = true
	return !again
}

// Restart shows the failure after which a run starts again, and from where.
func (s *screen) Restart(failure, text string) {
	if s.onWarn != nil {
		s.onWarn(failure + "; " + text)
	}
	s.Say(failure)
	s.Say(text)
}

// warn shows a warning.
func (s *screen) warn(text string) {
	if s.onWarn != nil {
		s.onWarn(text)
	}
	s.tell(zapcore.WarnLevel, "warning: ", text)
}

// always shows a line of the launcher, even if it is to be quiet.
func (s *screen) always(text string) {
	quiet := s.quiet
	s.quiet = false
	s.aside(text)
	s.quiet = quiet
}

// fail shows why the run failed.
func (s *screen) fail(text string) { s.tell(zapcore.ErrorLevel, "", text) }

// tell shows a line of the launcher. prefix shows its level; a JSON entry has a field for that.
func (s *screen) tell(level zapcore.Level, prefix, text string) {
	said := strings.ReplaceAll(text, noBreak, " ")
	s.events.Write(events.Event{Event: "message", Message: &events.Message{Level: level.String(), Text: said}})
	s.print(level, prefix, text)
}

// aside shows a line that is no event: the events tell the same in another way.
func (s *screen) aside(text string) { s.print(zapcore.InfoLevel, "", text) }

func (s *screen) print(level zapcore.Level, prefix, text string) {
	if s.quiet && level < zapcore.ErrorLevel {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.json {
		s.buf = logging.Line(level, -1, show.Lines(strings.ReplaceAll(text, noBreak, " ")))
	} else {
		s.buf = append(append(s.buf[:0], s.coloured(level, s.folded("launcher: "+prefix+text))...), '\n')
	}
	s.write(launch.Stderr, s.buf)
}

// folded returns text in lines that fit the terminal, without control characters.
func (s *screen) folded(text string) string {
	if width := style.Of(s.stderr).Width; width > 0 {
		text = style.Fold(text, width)
	}
	return show.Lines(strings.ReplaceAll(text, noBreak, " "))
}

func (s *screen) coloured(level zapcore.Level, text string) string {
	switch on := style.Of(s.stderr); level {
	case zapcore.WarnLevel:
		return on.Yellow(text)
	case zapcore.ErrorLevel:
		return on.Red(text)
	}
	return text
}

// sumUp prints the summary of a run.
func (s *screen) sumUp(r output.Report) (err error) {
	if s.events != nil {
		e, err := reportEvent(r)
		if err != nil {
			return err
		}
		s.events.Write(e)
		s.events.Verdict = string(r.Verdict)
	}
	switch {
	case s.json && s.stdout == s.stderr: // all lines on stderr are JSON
		_, err = s.Write(logging.Line(zapcore.InfoLevel, -1, output.Result(r)))
	case s.quiet:
		_, err = fmt.Fprintln(s.stdout, output.Result(r))
	default:
		err = output.Summary(s.stdout, r, s.long)
	}
	return err
}

// Write writes lines of the launcher's log.
func (s *screen) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(launch.Stderr, lines)
	return len(lines), nil
}

// Sync does nothing: every line is written at once.
func (s *screen) Sync() error { return nil }

// write ignores errors: there is no other place to report them.
func (s *screen) write(to launch.Stream, b []byte) {
	if s.bar != nil && (to == launch.Stderr || s.sameTerminal) && s.bar.above(b) {
		return
	}
	w := s.stdout
	if to == launch.Stderr {
		w = s.stderr
	}
	_, _ = w.Write(b)
}

// show shows a bar on the last line of the terminal.
func (s *screen) show(b *bar) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bar = b
}

// hide removes the bar. Lines wait until it is gone.
func (s *screen) hide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bar.close()
	s.bar = nil
}
