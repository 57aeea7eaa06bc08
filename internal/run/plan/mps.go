package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The control program of NVIDIA's multi-process service, its environment variables and its default directory, as NVIDIA
// documents them.
const (
	mpsProgram  = "nvidia-cuda-mps-control"
	pipeVar     = "CUDA_MPS_PIPE_DIRECTORY"
	logVar      = "CUDA_MPS_LOG_DIRECTORY"
	defaultDir  = "/tmp/nvidia-mps"
	answerLimit = 10 * time.Second // bounds the start and the end of the service
	pollEvery   = 20 * time.Millisecond
	// mpsClients is the largest number of processes that the service lets use one GPU.
	mpsClients = 48
)

// errNoMPS says that no service was started: the program is not installed, or a service runs already.
var errNoMPS = errors.New("no service to start")

// mpsService is a running multi-process service, under which processes use a shared GPU at the same time. Without it
// the GPU runs one process at a time, in turns. Processes use it if they have the variables of environ.
type mpsService struct {
	dir   string
	group int // process group of the control daemon and its servers
	ended chan struct{}
}

// startMPS starts a service for all GPUs, as the user of this process, and waits until it answers. The kernel kills the
// service when this process ends. env holds the variables that clients get in addition to this process's environment.
func startMPS(ctx context.Context, env []string) (*mpsService, error) {
	path, err := exec.LookPath(mpsProgram)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoMPS, err)
	}
	if slices.ContainsFunc(append(os.Environ(), env...),
		func(v string) bool { return strings.HasPrefix(v, pipeVar+"=") }) {
		return nil, fmt.Errorf("%w: %s is set", errNoMPS, pipeVar)
	}
	if _, err := os.Stat(filepath.Join(defaultDir, "control")); err == nil {
		return nil, fmt.Errorf("%w: one is in %s", errNoMPS, defaultDir)
	}
	dir, err := os.MkdirTemp("", "jacobi-mps-")
	if err != nil {
		return nil, fmt.Errorf("directory for %s: %w", mpsProgram, err)
	}
	s := &mpsService{dir: dir, ended: make(chan struct{})}
	if err := s.run(path); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.await(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// environ returns the variables that make a process use the service.
func (s *mpsService) environ() []string { return []string{pipeVar + "=" + s.dir, logVar + "=" + s.dir} }

// command returns a call of the program for this service. CUDA_VISIBLE_DEVICES is removed: the service must see all
// GPUs, because its clients choose theirs among the GPUs that the service sees.
func (s *mpsService) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, path, args...)
	c.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "CUDA_VISIBLE_DEVICES=")
	}), s.environ()...)
	return c
}

// run starts the control daemon.
func (s *mpsService) run(path string) error {
	c := s.command(context.Background(), path, "-f")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel ends the daemon with the thread that started it
		err := c.Start()
		started <- err
		if err == nil {
			_ = c.Wait() // a failure shows in the ranks that use the service
			close(s.ended)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", mpsProgram, err)
	}
	s.group = c.Process.Pid
	return nil
}

// await waits until the service answers.
func (s *mpsService) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	for {
		out, err := s.tell(ctx, "get_server_list")
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pollEvery): // the program cannot notify
		case <-s.ended:
			return fmt.Errorf("%s ended: %s", mpsProgram, out)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w: %s", mpsProgram, context.Cause(ctx), out)
		}
	}
}

// tell sends the control daemon a command and returns the output of the program.
func (s *mpsService) tell(ctx context.Context, command string) (string, error) {
	c := s.command(ctx, mpsProgram)
	c.Stdin = strings.NewReader(command + "\n")
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// close ends the service. Its clients must have ended.
func (s *mpsService) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	if _, err := s.tell(ctx, "quit"); err == nil {
		select {
		case <-s.ended:
		case <-ctx.Done():
		}
	}
	_ = syscall.Kill(-s.group, syscall.SIGKILL) // servers may outlive the daemon
	<-s.ended
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("directory of %s: %w", mpsProgram, err)
	}
	return nil
}
