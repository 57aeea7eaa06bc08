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

	"jacobi/internal/version"
)

const (
	// reachLimit bounds the way from the start of ssh to the greeting of the launcher at its other end.
	reachLimit = 30 * time.Second
	// leaveLimit is how long ssh may take to end once its input has.
	leaveLimit = 5 * time.Second
)

// sshOptions let ssh fail in bounded time and without questions. Whatever else it does, the user's own configuration
// says.
var sshOptions = []string{
	"-T", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o",
	"ServerAliveCountMax=2",
	"-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none",
}

// SSH reaches other machines through the system's ssh.
type SSH struct {
	Command []string // ssh with options of the user's
	Program string   // path of the launcher on the other machines, whose command "spawn" answers
	// Say gets what ssh, or the launcher over there, has to say meanwhile.
	Say func(text string)
}

// Reach returns the machine called host, once a launcher of this version has answered there.
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
			_ = w.Close() // it has ended
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
	greeting chan Greeting // one, or closed if none came
	news     chan News
	stop     chan struct{} // closed when nobody wants news any more
	ended    chan struct{} // closed when ssh has ended
	once     sync.Once

	sending sync.Mutex

	mu     sync.Mutex
	last   string // line of ssh's stderr
	answer bool   // the other side has greeted
}

// dial starts ssh.
func (s SSH) dial(host string) (*sshWire, error) {
	args := append(append([]string{}, s.Command[1:]...), sshOptions...)
	args = append(args, "--", host, ShellQuote(s.Program)+" spawn")
	w := &sshWire{
		command: exec.Command(s.Command[0], args...), greeting: make(chan Greeting, 1), news: make(chan News),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	// A terminal's Ctrl-C is for the launcher alone, which tells the ranks.
	w.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.command.WaitDelay = pipeDelay // a connection that ssh shares may hold stderr open
	stderr := &lineWriter{emit: func(line []byte) { w.hear(strings.TrimSpace(string(line)), s.Say) }}
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
		_ = w.command.Wait() // ProcessState says it all
		stderr.Close()
		close(w.ended)
		close(w.greeting)
		close(w.news)
	}()
	return w, nil
}

// receive passes on what comes until nothing more does.
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
			_, _ = io.Copy(io.Discard, r) // so that the other side can end
			return
		}
	}
}

// hear takes a line of ssh's stderr. What comes before the greeting matters only if none comes.
func (w *sshWire) hear(line string, say func(string)) {
	if line == "" || strings.HasSuffix(line, errLauncherGone.Error()) { // ssh says why, before or after it
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

// unreached says why there was no greeting, once ssh has ended.
func (w *sshWire) unreached(program string) error {
	said := w.last
	switch code := w.command.ProcessState.ExitCode(); {
	case code == 127 || code == 126: // as every shell has it
		return fmt.Errorf("%s cannot be started there (%s); --remote-bin names the folder of the programs on other "+
			"hosts", program, said)
	case code == 255 && said != "":
		return errors.New(said)
	case said == "":
		return fmt.Errorf("ssh ended with exit code %d and without a word", code)
	default:
		return fmt.Errorf("%s did not answer: exit code %d: %s", program, code, said)
	}
}

// Send implements Wire.
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

// News implements Wire.
func (w *sshWire) News() <-chan News { return w.news }

// Reason implements Wire.
func (w *sshWire) Reason() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != "" {
		return w.last
	}
	return fmt.Sprintf("ssh ended with exit code %d", w.command.ProcessState.ExitCode())
}

// Close implements Wire.
func (w *sshWire) Close() error {
	w.once.Do(func() {
		close(w.stop)
		_ = w.stdin.Close() // may have been closed by ssh's end
		limit := time.NewTimer(leaveLimit)
		defer limit.Stop()
		select {
		case <-w.ended:
		case <-limit.C:
			_ = w.command.Process.Kill()
			<-w.ended
		}
	})
	return nil
}

// ShellQuote returns text as one word of any shell.
func ShellQuote(text string) string {
	var b bytes.Buffer
	b.WriteByte('\'')
	b.WriteString(strings.ReplaceAll(text, "'", `'\''`))
	b.WriteByte('\'')
	return b.String()
}
