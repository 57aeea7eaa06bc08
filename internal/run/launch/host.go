package launch

import (
	"context"
	"syscall"

	"jacobi/internal/net/roster"
)

// Host is a place where ranks can be started: this machine (Local), a machine reached over ssh (SSH), or a node with an
// agent. A supervisor starts, signals and ends the ranks of a run through this interface alone.
//
// Implement it directly, or pass NewRemote a Wire whose other end Serve answers. NewRemote and Serve ensure, over any
// Wire, that the ranks do not outlive the launcher and that the launcher notices the loss of the ranks.
type Host interface {
	// Start starts the ranks of spec, all or none, and returns once they run. It is called once. It passes output
	// lines and exits to sink until each rank has had its Exit.
	Start(ctx context.Context, spec Spec, sink Sink) error
	// Signal sends sig to the ranks that have not ended, each with its process group. It does not wait.
	Signal(sig syscall.Signal)
	// Suspend stops the ranks that have not ended, as SIGSTOP does, until they get SIGCONT. It returns once they
	// are stopped or ctx ends. From then on the host tolerates silence from this process, which may stop itself.
	Suspend(ctx context.Context)
	// Close kills the ranks that have not ended and releases the host, in bounded time. It may be called again.
	Close() error
}

// Spec says what to start on one host. Env may hold secrets, so a Spec travels over the wire, never on a command line.
type Spec struct {
	// Path is the program of the ranks. If it is empty, the starting process looks for RankBinary.
	Path  string            `json:"path,omitempty"`
	Args  []string          `json:"args,omitempty"`
	Dir   string            `json:"dir,omitempty"` // working directory; empty: that of the starting process
	Env   []string          `json:"env"`           // VAR=value; overrides the environment of the starting process
	Ranks []roster.Identity `json:"ranks"`         // the variables of an identity are added to Env
}

// Sink receives the output and the exits of a host's ranks. Several goroutines call it.
type Sink struct {
	Line func(rank int, s Stream, line []byte) // one whole line; the callee must not keep the slice
	Exit func(Exit)                            // once for each rank, after its last line
}

// Exit is the end of a rank.
type Exit struct {
	Rank   int            `json:"rank"`
	Code   int            `json:"code,omitempty"`   // exit code; valid if Signal and Lost are empty
	Signal syscall.Signal `json:"signal,omitempty"` // the signal that ended the rank
	Said   string         `json:"said,omitempty"`   // the reason that the rank gave on stderr, in one line
	OOM    bool           `json:"oom,omitempty"`    // the kernel killed processes meanwhile because memory ran out
	// Lost says why the end of the rank is unknown: its host cannot be reached any more.
	Lost string `json:"lost,omitempty"`
}
