package launch

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// pipeDelay is how long the output of a rank that has ended may still be on its way.
const pipeDelay = time.Second

// exit is the end of a rank.
type exit struct {
	rank  int
	state *os.ProcessState
	last  string // the line of its stderr that best says why, or ""
}

// group is the ranks of this machine as processes, each the leader of its own process group. All are
// started by one OS thread, because the kernel kills a child with Pdeathsig when the thread that started
// it ends.
type group struct {
	commands []*exec.Cmd // by rank
	ended    []bool      // by rank; as the reader of exits sees it
	exits    chan exit   // one for each rank
	release  chan struct{}
}

// startGroup starts the commands, one a rank. out is called from several goroutines with whole lines; the goodbye
// of a rank that only follows another one is left out. If one command does not start, the others are killed.
func startGroup(commands []*exec.Cmd, out func(rank int, s Stream, line []byte)) (*group, error) {
	g := &group{
		commands: commands,
		ended:    make([]bool, len(commands)),
		exits:    make(chan exit, len(commands)),
		release:  make(chan struct{}),
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine, after the ranks
		started <- g.start(out)
		<-g.release
	}()
	if err := <-started; err != nil {
		g.signal(syscall.SIGKILL)
		for len(g.running()) > 0 {
			g.note(<-g.exits)
		}
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *group) start(out func(int, Stream, []byte)) error {
	for r, c := range g.commands {
		why := &verdict{rank: r}
		stdout := &lineWriter{emit: func(line []byte) { out(r, Stdout, line) }}
		stderr := &lineWriter{emit: func(line []byte) {
			if !why.see(line) {
				out(r, Stderr, line)
			}
		}}
		c.Stdout, c.Stderr = stdout, stderr
		c.WaitDelay = pipeDelay
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			for i := r; i < len(g.ended); i++ {
				g.ended[i] = true
			}
			return fmt.Errorf("start rank %d: %w", r, err)
		}
		go func() {
			_ = c.Wait() // ProcessState says it all
			stdout.Close()
			stderr.Close()
			if c.ProcessState.ExitCode() != rankConsequence {
				for _, line := range why.goodbye {
					out(r, Stderr, []byte(line))
				}
			}
			g.exits <- exit{rank: r, state: c.ProcessState, last: why.String()}
		}()
	}
	return nil
}

// signal sends sig to the process groups of all ranks that have not ended.
func (g *group) signal(sig syscall.Signal) {
	for r, c := range g.commands {
		if !g.ended[r] {
			_ = syscall.Kill(-c.Process.Pid, sig) // fails for a rank that has just ended
		}
	}
}

// note takes what came from exits.
func (g *group) note(e exit) { g.ended[e.rank] = true }

// running returns the ranks whose end was not noted.
func (g *group) running() []int {
	var ranks []int
	for r, ended := range g.ended {
		if !ended {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// close lets go of the thread, once all ranks have ended.
func (g *group) close() { close(g.release) }
