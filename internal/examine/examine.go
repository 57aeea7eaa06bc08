// Package examine holds what ranks tell of themselves and of their nodes when a run only tries its start, as launcher
// doctor has it.
package examine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/output"
	"jacobi/internal/version"
)

// Env, set to anything, makes ranks do all that comes before the sweeps, tell what they found, and end.
const Env = "JACOBI_EXAMINE"

// Rank is what one rank found.
type Rank struct {
	Rank int  `json:"rank"`
	Node Node `json:"node"`

	Report *output.RankReport `json:"report,omitempty"` // nil if the rank did not come so far
	// checkpoint.dir as rank 0 sees it; nil if there is none
	Checkpoints *Place `json:"checkpoints,omitempty"`
	// PeerAccess says, for the UUID of each GPU that this rank sees, whether its own one can reach the memory there.
	PeerAccess map[string]bool `json:"peer_access,omitempty"`

	Fault       string `json:"fault,omitempty"`       // why this rank cannot sweep
	Consequence bool   `json:"consequence,omitempty"` // of the fault of another rank
}

// Place is a directory that a run writes to.
type Place struct {
	Key       string `json:"key"` // output.dir or checkpoint.dir
	Dir       string `json:"dir"`
	Host      string `json:"host"` // that sees it so
	Needed    int64  `json:"needed_bytes"`
	Available int64  `json:"available_bytes"`
}

// Measure returns p with what is available on this host.
func (p Place) Measure() (*Place, error) {
	var err error
	if p.Host, err = os.Hostname(); err != nil {
		return nil, fmt.Errorf("host name: %w", err)
	}
	p.Available, err = output.AvailableBytes(p.Dir)
	return &p, err
}

// Unlimited stands for a limit that is none.
const Unlimited = -1

// Node is what a rank found on its node before it took anything of it.
type Node struct {
	Version     string `json:"version"`
	Cores       int    `json:"cores"` // that this process may use, as far as a container's limit allows
	MemoryBytes int64  `json:"memory_available_bytes"`
	MemoryBound string `json:"memory_bound"`         // what sets it
	ShmBytes    int64  `json:"shm_available_bytes"`  // of /dev/shm
	LockedBytes int64  `json:"locked_memory_bytes"`  // RLIMIT_MEMLOCK, or Unlimited
	MostFiles   int64  `json:"open_files_limit"`     // RLIMIT_NOFILE, or Unlimited
	Files       int    `json:"open_files,omitempty"` // once the rank was ready to sweep

	NATSRoundTrip float64 `json:"nats_round_trip_seconds"` // the shortest of some
	Clock         *Clock  `json:"clock,omitempty"`         // from local rank 0 of the nodes without rank 0
}

// Clock compares two clocks, in seconds.
type Clock struct {
	Ahead float64 `json:"ahead_seconds"` // of rank 0's
	Error float64 `json:"error_seconds"` // at most
}

// Here returns what can be told of this node without a connection.
func Here() (Node, error) {
	n := Node{Version: version.String(), Cores: runtime.GOMAXPROCS(0)}
	var locked, files unix.Rlimit
	var errs [4]error
	n.MemoryBytes, n.MemoryBound, errs[0] = configs.AvailableMemory()
	n.ShmBytes, errs[1] = output.AvailableBytes("/dev/shm")
	errs[2] = unix.Getrlimit(unix.RLIMIT_MEMLOCK, &locked)
	errs[3] = unix.Getrlimit(unix.RLIMIT_NOFILE, &files)
	if errors.Is(errs[1], fs.ErrNotExist) { // nothing here needs it
		errs[1] = nil
	}
	n.LockedBytes, n.MostFiles = int64(locked.Cur), int64(files.Cur) // RLIM_INFINITY becomes Unlimited
	return n, errors.Join(errs[:]...)
}

// OpenFiles returns how many files this process has open.
func OpenFiles() (int, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	return len(entries), err
}

// Undo returns a function that removes dir, and what is above it, as far as it is not there yet and will be empty.
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
