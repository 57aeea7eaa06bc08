package launch

import (
	"context"
	"syscall"

	"jacobi/internal/roster"
)

// Host is a place where ranks can be started: this machine (Local), one that is reached over ssh (SSH), one with an
// agent. A supervisor starts the ranks of a run on one Host or several and needs nothing else to end them.
//
// Implement it directly, or hand NewRemote a Wire to the other side and let Serve answer there: these two keep ranks
// and launcher from outliving each other, whatever the wire is made of.
type Host interface {
	// Start starts the ranks of spec, all or none, and returns once they run. It is called once. What becomes of
	// them goes to sink, until each of them has had its Exit.
	Start(ctx context.Context, spec Spec, sink Sink) error
	// Signal sends sig to the ranks that have not ended, each with its process group. It does not wait.
	Signal(sig syscall.Signal)
	// Suspend stops the ranks that have not ended, as SIGSTOP does, until they get SIGCONT. It returns once they are
	// stopped, or ctx ends; from then on the host bears that nothing is heard of this process, which may stop itself.
	Suspend(ctx context.Context)
	// Close kills the ranks that have not ended and lets go of the host, in bounded time. It may be called again.
	Close() error
}

// Spec says what to start on one host. It holds secrets (in Env): it travels over the wire, never on a command line.
type Spec struct {
	// of the ranks' program; empty: RankBinary where the starter finds it
	Path  string            `json:"path,omitempty"`
	Args  []string          `json:"args,omitempty"`
	Dir   string            `json:"dir,omitempty"` // working directory; empty: that of the starter
	Env   []string          `json:"env"`           // VAR=value, over the environment of the starter
	Ranks []roster.Identity `json:"ranks"`         // each joins Env
}

// Sink gets what ranks of a host say and how they end, from several goroutines.
type Sink struct {
	Line func(rank int, s Stream, line []byte) // whole lines; the slice is the callee's until it returns
	Exit func(Exit)                            // once for each rank, after its last line
}

// Exit is the end of a rank.
type Exit struct {
	Rank   int            `json:"rank"`
	Code   int            `json:"code,omitempty"`   // exit code; counts if Signal and Lost are empty
	Signal syscall.Signal `json:"signal,omitempty"` // that ended the rank
	Said   string         `json:"said,omitempty"`   // the line of its stderr that says best why
	OOM    bool           `json:"oom,omitempty"`    // the kernel killed processes meanwhile because memory ran out
	// why nobody knows how it ended: its host cannot be reached any more
	Lost string `json:"lost,omitempty"`
}
