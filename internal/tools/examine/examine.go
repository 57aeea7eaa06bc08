// Package examine holds the findings of ranks that only try the start of a run, for launcher doctor: what each rank
// found out about itself and its node.
package examine

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/version"
	"jacobi/internal/observe/output"
)

// Rank holds the findings of one rank.
type Rank struct {
	Rank int  `json:"rank"`
	Node Node `json:"node"`

	Report *output.RankReport `json:"report,omitempty"` // nil if the rank failed earlier
	// Checkpoints is checkpoint.dir as rank 0 sees it; nil on other ranks and if there is none.
	Checkpoints *Place `json:"checkpoints,omitempty"`
	// PeerAccess says, by the UUID of each other GPU that this rank sees, whether the rank's own GPU can access its
	// memory.
	PeerAccess map[string]bool `json:"peer_access,omitempty"`

	Fault       string `json:"fault,omitempty"`       // why this rank cannot sweep
	Consequence bool   `json:"consequence,omitempty"` // the fault follows from that of another rank
}

// Place is a directory that a run writes to.
type Place struct {
	Key       string `json:"key"` // output.dir or checkpoint.dir
	Dir       string `json:"dir"`
	Host      string `json:"host"` // host on which Available was measured
	Needed    int64  `json:"needed_bytes"`
	Available int64  `json:"available_bytes"`
}

// Measure returns p with Host and Available set for this host.
func (p Place) Measure() (*Place, error) {
	var err error
	if p.Host, err = os.Hostname(); err != nil {
		return nil, fmt.Errorf("host name: %w", err)
	}
	p.Available, err = output.AvailableBytes(p.Dir)
	return &p, err
}

// Unlimited is the value of a resource limit that is not set.
const Unlimited = -1

// Node describes a node before a rank takes any of its resources.
type Node struct {
	Version     string `json:"version"`
	Cores       int    `json:"cores"` // cores that this process may use, within the limit of its container
	MemoryBytes int64  `json:"memory_available_bytes"`
	MemoryBound string `json:"memory_bound"`         // what limits MemoryBytes
	ShmBytes    int64  `json:"shm_available_bytes"`  // free in /dev/shm
	LockedBytes int64  `json:"locked_memory_bytes"`  // RLIMIT_MEMLOCK, or Unlimited
	MostFiles   int64  `json:"open_files_limit"`     // RLIMIT_NOFILE, or Unlimited
	Files       int    `json:"open_files,omitempty"` // open files of a rank that is ready to sweep

	NATSRoundTrip float64 `json:"nats_round_trip_seconds"` // shortest of several
	Clock         *Clock  `json:"clock,omitempty"`         // set by local rank 0 of each node without rank 0
}

// Clock compares this node's clock with that of rank 0, in seconds.
type Clock struct {
	Ahead float64 `json:"ahead_seconds"` // this node's time minus that of rank 0
	Error float64 `json:"error_seconds"` // bound on the error of Ahead
}

// String describes the clock, relative to that of rank 0.
func (c Clock) String() string {
	word := "ahead of"
	if c.Ahead < 0 {
		word = "behind"
	}
	seconds := func(s float64) time.Duration {
		return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
	}
	return fmt.Sprintf("its clock is %v %s that of rank 0, give or take %v", seconds(math.Abs(c.Ahead)), word,
		seconds(c.Error))
}

// Here returns all findings about this node that need no connection.
func Here() (Node, error) {
	n := Node{Version: version.String(), Cores: runtime.GOMAXPROCS(0)}
	var locked, files unix.Rlimit
	var errs [4]error
	n.MemoryBytes, n.MemoryBound, errs[0] = configs.AvailableMemory()
	n.ShmBytes, errs[1] = output.AvailableBytes("/dev/shm")
	errs[2] = unix.Getrlimit(unix.RLIMIT_MEMLOCK, &locked)
	errs[3] = unix.Getrlimit(unix.RLIMIT_NOFILE, &files)
	if errors.Is(errs[1], fs.ErrNotExist) { // a node without /dev/shm can run ranks
		errs[1] = nil
	}
	n.LockedBytes, n.MostFiles = int64(locked.Cur), int64(files.Cur) // RLIM_INFINITY becomes Unlimited
	return n, errors.Join(errs[:]...)
}

// Undo notes which of dir and its parents do not exist yet. The function that it returns removes these directories,
// innermost first, as long as they are empty.
func Undo(dir string) func() {
	var missing []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Lstat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, d)
	}
	return func() {
		for _, d := range missing {
			if os.Remove(d) != nil {
				return
			}
		}
	}
}
