package launch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"jacobi/internal/base/version"
)

const (
	// reachLimit bounds the time from the start of ssh to the greeting of the launcher at its other end.
	reachLimit = 30 * time.Second
	// leaveLimit is how long ssh may take to end after its input has ended.
	leaveLimit = 5 * time.Second
)

// sshOptions make ssh fail in bounded time and ask no questions. The user's own configuration decides everything else.
var sshOptions = []string{
	"-T", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o",
	"ServerAliveCountMax=2",
	"-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none",
}

// SSH reaches other machines through the system's ssh.
type SSH struct {
	Command []string // ssh and the user's options
	Program string   // path of the launcher on the other machines; its command "spawn" answers
	// Say receives messages of ssh, and of the launcher at the other end.
	Say func(text string)
}

// Reach connects to host and returns it once a launcher of the same version has answered there.
func (s SSH) Reach(ctx context.Context, host string) (*Remote, Greeting, error) {
	fail := func(err error) (*Remote, Greeting, error) {
		return nil, Greeting{}, fmt.Errorf("host %s: %w", host, err)
	}
	w, err := s.dial(host)
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reachLimit, fmt.Errorf("no answer over ssh within %v", reachLimit))
	defer cancel()
	select {
	case g, ok := <-w.greeting:
		if !ok {
			_ = w.Close() // ssh has ended
			return fail(w.unreached(s.Program))
		}
		if own := version.String(); g.Version != own {
			_ = w.Close()
			return fail(fmt.Errorf("%s is of version %s there, and of version %s here", s.Program, g.Version, own))
		}
		return NewRemote(host, w), g, nil
	case <-ctx.Done():
		_ = w.Close()
		return fail(context.Cause(ctx))
	}
}

// sshWire is a Wire over an ssh process.
type sshWire struct {
	command  *exec.Cmd
	stdin    io.WriteCloser
	greeting chan Greeting // receives one greeting; closed without one if none came
	news     chan News
	stop     chan struct{} // closed by Close: news is not read any more
	ended    chan struct{} // closed when ssh has ended
	once     sync.Once

	sending sync.Mutex

	mu     sync.Mutex
	last   string // last line of ssh's stderr
	answer bool   // the greeting has come
}

// dial starts ssh.
func (s SSH) dial(host string) (*sshWire, error) {
	args := append(append([]string{}, s.Command[1:]...), sshOptions...)
	args = append(args, "--", host, ShellQuote(s.Program)+" spawn")
	w := &sshWire{
		command: exec.Command(s.Command[0], args...), greeting: make(chan Greeting, 1), news: make(chan News),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	// Ctrl-C on a terminal must reach the launcher alone, which tells the ranks.
	w.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.command.WaitDelay = pipeDelay // the master process of a shared connection may hold stderr open
	stderr := &lineWriter{emit: func(line []byte) { w.stderrLine(strings.TrimSpace(string(line)), s.Say) }}
	w.command.Stderr = stderr
	stdin, err := w.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := w.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.command.Start(); err != nil {
		return nil, fmt.Errorf("%w; --ssh says how to start it", err)
	}
	w.stdin = stdin
	go func() {
		w.receive(stdout)
		time.AfterFunc(leaveLimit, func() { _ = w.command.Process.Kill() })
		_ = w.command.Wait() // the error repeats ProcessState
		stderr.Close()
		close(w.ended)
		close(w.greeting)
		close(w.news)
	}()
	return w, nil
}

// receive passes the greeting and the news on until stdout ends.
func (w *sshWire) receive(stdout io.Reader) {
	r := bufio.NewReader(stdout)
	g, err := readGreeting(r)
	if err != nil {
		return
	}
	w.mu.Lock()
	w.answer = true
	w.mu.Unlock()
	w.greeting <- g
	for d := json.NewDecoder(r); ; {
		var n News
		if d.Decode(&n) != nil {
			return
		}
		select {
		case w.news <- n:
		case <-w.stop:
			_, _ = io.Copy(io.Discard, r) // lets the other side write its last news and end
			return
		}
	}
}

// stderrLine takes a line of ssh's stderr. Lines before the greeting are shown only if the greeting never comes.
func (w *sshWire) stderrLine(line string, say func(string)) {
	// The far end says errLauncherGone when ssh breaks. The cause is what ssh says, before or after this line.
	if line == "" || strings.HasSuffix(line, errLauncherGone.Error()) {
		return
	}
	w.mu.Lock()
	w.last = line
	answer := w.answer
	w.mu.Unlock()
	if answer {
		say(line)
	}
}

// unreached returns the reason why no greeting came. It is called after ssh has ended.
func (w *sshWire) unreached(program string) error {
	last := w.last
	switch code := w.command.ProcessState.ExitCode(); {
	case code == 127 || code == 126: // a shell's codes for a program that is missing or cannot be executed
		return fmt.Errorf("%s cannot be started there (%s); --remote-bin names the folder of the programs on other "+
			"hosts", program, last)
	case code == 255 && last != "":
		return errors.New(last)
	case last == "":
		return fmt.Errorf("ssh ended with exit code %d without a message", code)
	default:
		return fmt.Errorf("%s did not answer: exit code %d: %s", program, code, last)
	}
}

func (w *sshWire) Send(o Order) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	w.sending.Lock()
	defer w.sending.Unlock()
	_, err = w.stdin.Write(append(data, '\n'))
	return err
}

func (w *sshWire) News() <-chan News { return w.news }

func (w *sshWire) Reason() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != "" {
		return w.last
	}
	return fmt.Sprintf("ssh ended with exit code %d", w.command.ProcessState.ExitCode())
}

func (w *sshWire) Close() error {
	w.once.Do(func() {
		close(w.stop)
		_ = w.stdin.Close() // fails if ssh has ended
		limit := time.NewTimer(leaveLimit)
		defer limit.Stop()
		select {
		case <-w.ended:
		case <-limit.C:
			_ = w.command.Process.Kill()
			select { // a process that ssh has started may hold its output open
			case <-w.ended:
			case <-time.After(leaveLimit):
			}
		}
	})
	return nil
}

// ShellQuote quotes text so that a POSIX shell reads it as one word.
func ShellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Stream is one of the two outputs of a process.
type Stream uint8

// The two streams.
const (
	Stdout Stream = iota
	Stderr
)

func (s Stream) String() string {
	if s == Stdout {
		return "stdout"
	}
	return "stderr"
}

// maxLine is the length, in bytes, above which a line is passed on in pieces.
const maxLine = 64 << 10

// lineWriter splits its input into lines and passes each one, without its line end, to emit. One goroutine uses it.
type lineWriter struct {
	emit func(line []byte)
	rest []byte // the beginning of an unfinished line
}

// Write never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, after, ended := bytes.Cut(p, []byte{'\n'})
		if room := maxLine - len(w.rest); len(line) > room {
			line, after, ended = p[:room], p[room:], true
		}
		w.rest = append(w.rest, line...)
		if ended {
			w.flush()
		}
		p = after
	}
	return n, nil
}

func (w *lineWriter) flush() {
	w.emit(w.rest)
	w.rest = w.rest[:0]
}

// Close passes on an unfinished last line.
func (w *lineWriter) Close() {
	if len(w.rest) > 0 {
		w.flush()
	}
}

// Tag says which tag precedes a line of a rank's output.
type Tag uint8

// The tags.
const (
	TagRank   Tag = iota // [3] line
	TagStream            // [3]<stderr> line
	TagNone              // line
)

// ParseTag reads "rank", "stream" or "none".
func ParseTag(name string) (Tag, error) {
	if tag, ok := map[string]Tag{"rank": TagRank, "stream": TagStream, "none": TagNone}[name]; ok {
		return tag, nil
	}
	return 0, fmt.Errorf("%q: allowed are rank, stream and none", name)
}

// Append appends the line of a rank, with its tag and a line end, to b.
func (t Tag) Append(b []byte, rank int, stream Stream, line []byte) []byte {
	switch t {
	case TagRank:
		b = fmt.Appendf(b, "[%d] ", rank)
	case TagStream:
		b = fmt.Appendf(b, "[%d]<%s> ", rank, stream)
	}
	b = append(b, line...)
	return append(b, '\n')
}

// Greeting is the first message of a far end over a byte stream. Anything before it, such as the output of a login
// shell, is skipped.
type Greeting struct {
	Version string `json:"version"`
	Host    string `json:"host"`             // the machine's own host name
	Node    string `json:"node,omitempty"`   // identifies the machine independently of its names; "" if unknown
	Client  string `json:"client,omitempty"` // address from which ssh came; "" if unknown
}

const (
	greetingPrefix = "jacobi-launcher "
	maxChatter     = 1 << 20 // bytes that may precede the greeting
)

// ServeStream writes the greeting to out, then runs Serve with orders from in and news to out, as JSON.
func ServeStream(ctx context.Context, in io.Reader, out io.Writer, g Greeting, prepare Prepare) error {
	greeting, err := json.Marshal(g)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "\n%s%s\n", greetingPrefix, greeting); err != nil {
		return fmt.Errorf("greet the launcher: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	orders := make(chan Order)
	go func() {
		defer close(orders)
		for d := json.NewDecoder(in); ; {
			var o Order
			if d.Decode(&o) != nil {
				return
			}
			select {
			case orders <- o:
			case <-ctx.Done():
				return
			}
		}
	}()
	e := json.NewEncoder(out)
	return Serve(ctx, orders, func(n News) error { return e.Encode(n) }, prepare)
}

// errNoGreeting is the error of a stream that ended, or brought maxChatter bytes, without a greeting.
var errNoGreeting = errors.New("no launcher answered")

// readGreeting reads r up to and including the greeting. The rest of r is news.
func readGreeting(r *bufio.Reader) (g Greeting, err error) {
	for chatter := 0; chatter < maxChatter; {
		line, err := r.ReadSlice('\n')
		chatter += len(line)
		if text, ok := strings.CutPrefix(string(line), greetingPrefix); ok && err == nil {
			if err := json.Unmarshal([]byte(text), &g); err != nil {
				return g, fmt.Errorf("greeting: %w", err)
			}
			return g, nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	return g, errNoGreeting
}
