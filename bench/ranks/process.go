package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"jacobi/internal/net/natsserver"
)

// process is another process of this program. It ends when its standard input does.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts this program with other arguments.
func start(args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

// tell sends the process a line, line waits for one.
func (p *process) tell(line string) error {
	_, err := fmt.Fprintln(p.in, line)
	return err
}

func (p *process) line() (string, error) {
	line, err := p.out.ReadString('\n')
	return strings.TrimSpace(line), err
}

// stop waits until the process has ended.
func (p *process) stop() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// processorTime returns the seconds that the processors have spent on the process.
func (p *process) processorTime() float64 {
	var t unix.Timespec
	clock := int32(^p.cmd.Process.Pid<<3 | 2) // clock_getcpuclockid(3)
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0
	}
	return float64(t.Sec) + float64(t.Nsec)/1e9
}

// serve runs the server that a launcher embeds, until standard input ends. It prints its URL.
func serve() error {
	s, err := natsserver.Start(natsserver.Options{RunID: runID, Log: zap.NewNop()})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(s.NATS().URL)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
