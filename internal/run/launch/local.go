package launch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"jacobi/internal/net/roster"
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
		c := exec.Command(path)
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

func (l *Local) Signal(sig syscall.Signal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pid := range l.running {
		_ = syscall.Kill(-pid, sig) // fails for a rank that has just ended
	}
}

func (l *Local) Suspend(context.Context) { l.Signal(syscall.SIGSTOP) }

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
	if code := state.ExitCode(); code == 0 || code == RankInterrupted || code == ExitMissed {
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

var reserved = []string{roster.EnvRank, roster.EnvSize, roster.EnvLocalRank, roster.EnvLocalSize, roster.EnvRunID}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// NewRunID returns the random name of a run, 32 hexadecimal digits.
func NewRunID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// Variables turns the values of -x into "VAR=value". It looks up the value of a plain "VAR" with lookup.
func Variables(flags []string, lookup func(string) (string, bool)) ([]string, error) {
	var vars []string
	for _, f := range flags {
		name, value, given := strings.Cut(f, "=")
		if !variableName.MatchString(name) {
			return nil, fmt.Errorf("-x %q: allowed are VAR and VAR=value", f)
		}
		if slices.Contains(reserved, name) {
			return nil, fmt.Errorf("-x %s: the launcher sets this variable for each rank", name)
		}
		if !given {
			var ok bool
			if value, ok = lookup(name); !ok {
				return nil, fmt.Errorf("-x %s: not set in the environment; -x %s=value sets it", name, name)
			}
		}
		vars = append(vars, name+"="+value)
	}
	return vars, nil
}

// RankBinary is the name of the program that the launcher starts for each rank.
const RankBinary = "jacobi-rank"

// FindRankBinary returns the path of RankBinary. It looks in the directory of the running executable, then on PATH.
func FindRankBinary() (string, error) {
	self, err := Self()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", RankBinary, err)
	}
	return findBinary(RankBinary, filepath.Dir(self))
}

// Self returns the path of the running executable, without symbolic links.
func Self() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	return self, nil
}

func findBinary(name, dir string) (string, error) {
	if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find %s: neither beside the launcher in %s nor on PATH (%s)", name, dir,
			os.Getenv("PATH"))
	}
	return filepath.Abs(path)
}

// oomKills returns how many processes the kernel has killed so far because memory ran out; 0 if the kernel does not
// say.
func oomKills() int {
	stat, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	return countOf(string(stat), "oom_kill")
}

// countOf returns the number that follows name in lines of names and numbers; 0 if there is none.
func countOf(stat, name string) int {
	for line := range strings.Lines(stat) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(value)) // 0 if it is not a number
			return n
		}
	}
	return 0
}
