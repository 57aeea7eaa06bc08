package main

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"jacobi/internal/launch"
)

// screen is where lines of the ranks and of the launcher go, each one whole. While a progress bar is shown, lines for
// its terminal go above it.
type screen struct {
	tag            launch.Tag
	stdout, stderr io.Writer
	sameTerminal   bool // stdout and stderr are terminals

	mu  sync.Mutex
	buf []byte
	bar *bar // nil if there is none
}

func newScreen(stdout, stderr io.Writer, tag launch.Tag) *screen {
	return &screen{tag: tag, stdout: stdout, stderr: stderr, sameTerminal: isTerminal(stdout) && isTerminal(stderr)}
}

// isTerminal says whether w is a terminal that can move its cursor.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// rankLine shows a line of a rank.
func (s *screen) rankLine(rank int, from launch.Stream, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = s.tag.Append(s.buf[:0], rank, from, line)
	s.write(from, s.buf)
}

// say shows a line of the launcher.
func (s *screen) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(append(append(s.buf[:0], "launcher: "...), text...), '\n')
	s.write(launch.Stderr, s.buf)
}

// warn shows a line that tells of something which the user may not want.
func (s *screen) warn(text string) { s.say("warning: " + text) }

// Write shows lines of the launcher's log.
func (s *screen) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(launch.Stderr, lines)
	return len(lines), nil
}

// Sync does nothing: every line is written at once.
func (s *screen) Sync() error { return nil }

// write does not fail: there is nobody to tell but those who do not listen.
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

// show puts a bar at the foot of the terminal.
func (s *screen) show(b *bar) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bar = b
}

// hide takes the bar away; lines wait meanwhile.
func (s *screen) hide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bar.close()
	s.bar = nil
}
