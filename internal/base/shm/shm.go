// Package shm shares memory between processes of one node. A segment has no name in any file system: the
// kernel frees it with the last process that maps it, however that process ends.
package shm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/regular"
)

const (
	memfdName = "jacobi"
	magic     = 0x6d68732d6a61636f // tells a segment of this layout from any other file
	// magic u64, bytes u64, nonce [16]byte; a cache line, so that Bytes is aligned to one
	headerSize = 64
	nonceSize  = 16
	seals      = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
)

// Handle tells another process of the node where a segment is. It is valid as long as the process that created the
// segment keeps it open.
type Handle struct {
	PID   int    `json:"pid"`
	FD    int    `json:"fd"`
	Bytes int    `json:"bytes"`
	Nonce string `json:"nonce"` // hexadecimal; also in the segment, to detect a PID of another namespace
}

// Segment is memory that several processes map. Its bytes start as zeros and are aligned to 64. The owner must make
// sure that they are not used after Close.
type Segment struct {
	handle Handle
	file   *os.File // nil in a process that opened the segment
	mapped []byte
	once   sync.Once
	err    error
}

// Create creates a segment of size bytes, size > 0, and reserves its memory. The size is sealed, so no process can
// shrink the segment and make accesses of another process fault.
func Create(size int) (*Segment, error) {
	if size <= 0 {
		return nil, fmt.Errorf("shm: segment of %d bytes: at least 1 is needed", size)
	}
	fd, err := unix.MemfdCreate(memfdName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("shm: create a segment: %w", err)
	}
	file := os.NewFile(uintptr(fd), memfdName)
	s, err := fill(file, size)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shm: create a segment of %d bytes: %w", size, err), file.Close())
	}
	return s, nil
}

func fill(file *os.File, size int) (*Segment, error) {
	fd := int(file.Fd())
	total := headerSize + size
	for {
		err := unix.Fallocate(fd, 0, 0, int64(total))
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return nil, fmt.Errorf("reserve: %w", err)
		}
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	var nonce [nonceSize]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return nil, err
	}
	mapped, err := unix.Mmap(fd, 0, total, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	binary.NativeEndian.PutUint64(mapped, magic)
	binary.NativeEndian.PutUint64(mapped[8:], uint64(size))
	copy(mapped[16:], nonce[:])
	h := Handle{PID: os.Getpid(), FD: fd, Bytes: size, Nonce: hex.EncodeToString(nonce[:])}
	return &Segment{handle: h, file: file, mapped: mapped}, nil
}

// Open maps the segment of another process, or of this one. It fails if the handle does not lead to exactly that
// segment: with another PID namespace, another user, or a creator that has ended.
func Open(h Handle) (*Segment, error) {
	mapped, err := open(h)
	if err != nil {
		return nil, fmt.Errorf("shm: open segment %d of process %d: %w", h.FD, h.PID, err)
	}
	return &Segment{handle: h, mapped: mapped}, nil
}

func open(h Handle) ([]byte, error) {
	if h.PID <= 0 || h.FD < 0 || h.Bytes <= 0 || len(h.Nonce) != 2*nonceSize {
		return nil, errors.New("not a handle")
	}
	path := fmt.Sprintf("/proc/%d/fd/%d", h.PID, h.FD)
	// The link is checked first, so that a wrong handle does not open a terminal, a pipe or a device.
	target, err := os.Readlink(path)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(target, "/memfd:"+memfdName) {
		return nil, fmt.Errorf("%s is %s, not a segment", path, target)
	}
	file, err := regular.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	fd := int(file.Fd())
	if got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil || got&seals != seals {
		return nil, fmt.Errorf("%s: its size is not sealed (seals %#x, %v)", path, got, err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	total := headerSize + h.Bytes
	if info.Size() != int64(total) {
		return nil, fmt.Errorf("%s has %d bytes, want %d", path, info.Size(), total)
	}
	mapped, err := unix.Mmap(fd, 0, total, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	if err := check(mapped, h); err != nil {
		return nil, errors.Join(err, unix.Munmap(mapped))
	}
	return mapped, nil
}

func check(mapped []byte, h Handle) error {
	if got := binary.NativeEndian.Uint64(mapped); got != magic {
		return fmt.Errorf("magic %#x, want %#x", got, uint64(magic))
	}
	if got := hex.EncodeToString(mapped[16 : 16+nonceSize]); got != h.Nonce {
		return fmt.Errorf("nonce %s, want %s: the PID belongs to another process (another PID namespace?)", got,
			h.Nonce)
	}
	return nil
}

// Handle returns what another process needs to open the segment.
func (s *Segment) Handle() Handle { return s.handle }

// Bytes returns the segment's memory. Plain accesses by several processes must be ordered by atomic operations on a
// word of the segment.
func (s *Segment) Bytes() []byte { return s.mapped[headerSize:] }

// Uint64 returns the word at byte offset off of Bytes, a multiple of 8.
func (s *Segment) Uint64(off int) *atomic.Uint64 {
	return (*atomic.Uint64)(s.at(off, 8, 8))
}

// Word returns the word at byte offset off of Bytes, a multiple of WordSize; it takes WordSize bytes.
func (s *Segment) Word(off int) *Word {
	return (*Word)(s.at(off, WordSize, WordSize))
}

// at panics if off lies outside the segment or is not aligned, as an index out of range does.
func (s *Segment) at(off, size, align int) unsafe.Pointer {
	b := s.Bytes()[off : off+size]
	if off%align != 0 {
		panic(fmt.Sprintf("shm: offset %d is no multiple of %d", off, align))
	}
	return unsafe.Pointer(unsafe.SliceData(b))
}

// Close unmaps the segment. Processes that have mapped it keep it. No process can open it any more once its creator has
// closed it. Further calls do nothing.
func (s *Segment) Close() error {
	s.once.Do(func() {
		s.err = unix.Munmap(s.mapped)
		s.mapped = nil
		if s.file != nil {
			s.err = errors.Join(s.err, s.file.Close())
		}
		if s.err != nil {
			s.err = fmt.Errorf("shm: close a segment: %w", s.err)
		}
	})
	return s.err
}

// WordSize is the size of a Word in bytes: a cache line, so that two words never share one.
const WordSize = 64

// Word is a number in a segment that processes can wait on. Its operations are atomic and sequentially consistent, and
// order plain accesses to the segment as those of sync/atomic do. It starts as 0.
type Word struct {
	value atomic.Uint32
	// number of processes that sleep or are about to; one that is killed asleep stays counted, at the cost of a system
	// call in each Wake
	waiters atomic.Uint32
	_       [WordSize - 8]byte
}

// maxSleep is the longest sleep. After it a waiter checks its context and its deadline.
const maxSleep = 40 * time.Millisecond

// Load returns the number.
func (w *Word) Load() uint32 { return w.value.Load() }

// Store sets the number and wakes all that wait for it.
func (w *Word) Store(v uint32) {
	w.value.Store(v)
	w.Wake()
}

// Wake makes all waiters check the number again. It makes no system call if none sleeps.
func (w *Word) Wake() {
	// A waiter counts itself before it loads the number and sleeps. A writer changes the number before it loads the
	// count. So either the waiter sees the new number, or the writer sees the waiter.
	if w.waiters.Load() != 0 {
		futexWake(&w.value)
	}
}

// Wait returns nil as soon as until(number) is true. It polls for the time spin (see SpinTime), then sleeps. It fails
// with the cause of ctx within 50 ms of ctx's end, and with os.ErrDeadlineExceeded after deadline, unless that is zero.
func (w *Word) Wait(ctx context.Context, spin time.Duration, deadline time.Time, until func(uint32) bool) error {
	if until(w.value.Load()) {
		return nil
	}
	if spin > 0 {
		// No runtime.Gosched here: in a goroutine locked to its thread it costs more than a sleep.
		for start := time.Now(); time.Since(start) < spin; {
			for range 32 {
				if until(w.value.Load()) {
					return nil
				}
			}
		}
	}
	w.waiters.Add(1)
	defer w.waiters.Add(math.MaxUint32)
	for {
		v := w.value.Load()
		if until(v) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		nap := maxSleep
		if !deadline.IsZero() {
			nap = min(nap, time.Until(deadline))
			if nap <= 0 {
				return os.ErrDeadlineExceeded
			}
		}
		if err := futexWait(&w.value, v, nap); err != nil {
			return err
		}
	}
}

// SpinTime returns how long a Wait should spin if threadsPerCore busy threads share a core. With one thread a core it
// is about the cost of a sleep and a wake. With more it is 0, since spinning would take the core from the thread waited
// for.
func SpinTime(threadsPerCore int) time.Duration {
	if threadsPerCore > 1 {
		return 0
	}
	return 50 * time.Microsecond
}

// The operations of futex(2). They are without FUTEX_PRIVATE_FLAG because processes share the words.
const (
	opWait = 0
	opWake = 1
)

// futexWait sleeps while *addr is v, at most for d; it may return early.
func futexWait(addr *atomic.Uint32, v uint32, d time.Duration) error {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), opWait, uintptr(v),
		uintptr(unsafe.Pointer(&t)), 0, 0)
	switch errno {
	case 0, unix.EAGAIN, unix.EINTR, unix.ETIMEDOUT:
		return nil
	}
	return fmt.Errorf("shm: wait: %w", errno)
}

func futexWake(addr *atomic.Uint32) {
	// It fails only for an address that is not mapped, and loading the count would have faulted there.
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(addr)), opWake, math.MaxInt32)
}

// Node identifies where a process can share memory. Processes with equal Nodes can try to open each other's segments;
// only Open tells whether that works.
type Node struct {
	Boot string `json:"boot"` // the running kernel's boot id
	// number of the PID namespace; process numbers mean the same within it
	PIDNamespace string `json:"pid_namespace"`
	User         int    `json:"user"` // effective user id; other users cannot read /proc/PID/fd
}

// LocalNode returns the Node of this process.
func LocalNode() (Node, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Node{}, fmt.Errorf("shm: identify the node: %w", err)
	}
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Node{}, fmt.Errorf("shm: identify the PID namespace: %w", err)
	}
	ns = strings.TrimSuffix(strings.TrimPrefix(ns, "pid:["), "]")
	return Node{Boot: strings.TrimSpace(string(boot)), PIDNamespace: ns, User: os.Geteuid()}, nil
}

// String returns the Node in words, for messages.
func (n Node) String() string {
	return fmt.Sprintf("boot id %s, PID namespace %s, user %d", n.Boot, n.PIDNamespace, n.User)
}
