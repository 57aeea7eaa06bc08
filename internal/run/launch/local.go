package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// pipeDelay bounds the wait for output of a rank that has ended, since a child of the rank may hold its pipes open.
const pipeDelay = time.Second

// killLimit bounds the wait for killed ranks in Close.
const killLimit = 5 * time.Second

// Local is this machine. Each rank is a process that leads its own process group. One OS thread starts all ranks
// because the kernel kills a child with Pdeathsig when the thread that started it ends.
type Local struct {
	Prepare Prepare // may be nil

	done    func() // returned by Prepare; may be nil
	ended   sync.WaitGroup
	once    sync.Once
	release chan struct{} // nil before Start

	mu      sync.Mutex
	running map[int]int // rank to process id
}

// Prepare completes a spec before its ranks start and starts any service that they need, or refuses the spec. If done
// is not nil, it is called after the ranks have ended or were killed.
type Prepare func(ctx context.Context, spec *Spec) (done func(), err error)

// Start implements Host. It withholds the final message of a rank that fails from sink.Line: the Exit holds it.
func (l *Local) Start(ctx context.Context, spec Spec, sink Sink) error {
	l.running, l.release = map[int]int{}, make(chan struct{})
	if l.Prepare != nil {
		var err error
		if l.done, err = l.Prepare(ctx, &spec); err != nil {
			return err
		}
	}
	path := spec.Path
	if path == "" {
		var err error
		if path, err = FindRankBinary(); err != nil {
			return err
		}
	}
	processes := make([]*process, len(spec.Ranks))
	for i, id := range spec.Ranks {
		c := exec.Command(path, spec.Args...)
		c.Dir = spec.Dir
		c.Env = append(append(os.Environ(), spec.Env...), id.Environ()...)
		processes[i] = newProcess(c, id.Rank, sink)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine, after the ranks
		started <- l.startAll(processes)
		<-l.release
	}()
	if err := <-started; err != nil {
		_ = l.Close()
		return err
	}
	return nil
}

// startAll starts the processes. If one does not start, the others are killed and their exits are not reported.
func (l *Local) startAll(processes []*process) error {
	var err error
	for _, p := range processes {
		if err = p.command.Start(); err != nil {
			err = fmt.Errorf("start rank %d: %w", p.rank, err)
			break
		}
		l.mu.Lock()
		l.running[p.rank] = p.command.Process.Pid
		l.mu.Unlock()
	}
	for _, p := range processes {
		if p.command.Process == nil {
			break
		}
		l.ended.Go(func() {
			e := p.wait(func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.running, p.rank)
			})
			if err == nil {
				p.sink.Exit(e)
			}
		})
	}
	return err
}

// Signal implements Host.
func (l *Local) Signal(sig syscall.Signal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pid := range l.running {
		_ = syscall.Kill(-pid, sig) // fails for a rank that has just ended
	}
}

// Suspend implements Host.
func (l *Local) Suspend(context.Context) { l.Signal(syscall.SIGSTOP) }

// Close implements Host.
func (l *Local) Close() (err error) {
	if l.release == nil {
		return nil
	}
	l.once.Do(func() {
		l.Signal(syscall.SIGKILL)
		ended := make(chan struct{})
		go func() { l.ended.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(killLimit):
			err = fmt.Errorf("processes of ranks do not end %v after SIGKILL: the kernel holds them", killLimit)
		}
		close(l.release)
		if l.done != nil {
			l.done()
		}
	})
	return err
}

// process is one rank.
type process struct {
	rank           int
	oomKills       int // count of the kernel when the rank started
	command        *exec.Cmd
	sink           Sink
	why            verdict
	stdout, stderr *lineWriter
}

func newProcess(c *exec.Cmd, rank int, sink Sink) *process {
	p := &process{rank: rank, oomKills: oomKills(), command: c, sink: sink, why: verdict{rank: rank}}
	p.stdout = &lineWriter{emit: func(line []byte) { sink.Line(rank, Stdout, line) }}
	p.stderr = &lineWriter{emit: func(line []byte) {
		if !p.why.add(line) {
			sink.Line(rank, Stderr, line)
		}
	}}
	c.Stdout, c.Stderr = p.stdout, p.stderr
	c.WaitDelay = pipeDelay
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return p
}

// wait waits for the process and returns its Exit after its last line was passed on. It calls gone when the process
// has ended.
func (p *process) wait(gone func()) Exit {
	_ = p.command.Wait() // the error repeats ProcessState
	gone()
	p.stdout.Close()
	p.stderr.Close()
	state := p.command.ProcessState
	if code := state.ExitCode(); code == 0 || code == rankInterrupted || code == rankMissed {
		for _, line := range p.why.final {
			p.sink.Line(p.rank, Stderr, []byte(line))
		}
	}
	e := Exit{Rank: p.rank, Said: p.why.String()}
	if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
		e.Signal, e.Said = status.Signal(), p.why.crashReason()
		e.OOM = e.Signal == syscall.SIGKILL && oomKills() > p.oomKills
	} else {
		e.Code = status.ExitStatus()
	}
	return e
}
