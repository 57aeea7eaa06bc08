package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// answerTime is how long a client may take to read an answer. One that takes longer has gone.
const answerTime = 30 * time.Second

// socket is a Unix socket at which clients of this user ask for runs.
type socket struct {
	listener *net.UnixListener
	room     chan struct{} // has maxClients elements at most

	mu     sync.Mutex
	conns  map[*net.UnixConn]bool
	closed bool
}

// listenAt opens a socket of mode 0600. Its directory has to be this user's, with the mode 0700. A socket at which
// nobody listens any more is replaced.
func listenAt(path string) (*socket, error) {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("--socket %q: %w", path, err)
	}
	var own unix.Stat_t
	if err := unix.Stat(dir, &own); err != nil {
		return nil, fmt.Errorf("--socket %q: %w", path, err)
	}
	if mode := info.Mode(); mode.Perm() != 0o700 || int(own.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("--socket %q: its directory has the mode %04o and the owner %d; it must be yours, with "+
			"the mode 0700", path, mode.Perm(), own.Uid)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		if c, err := net.Dial("unix", path); err == nil {
			return nil, errors.Join(fmt.Errorf("--socket %q: another program listens there", path), c.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("--socket: %w", err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("--socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("--socket: %w", err), l.Close())
	}
	return &socket{listener: l, room: make(chan struct{}, maxClients), conns: map[*net.UnixConn]bool{}}, nil
}

// accept takes the requests of clients until close. One client too many waits to be accepted.
func (s *socket) accept(ctx context.Context, to *serving) {
	for {
		s.room <- struct{}{}
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			return
		}
		if !s.keep(conn) {
			conn.Close()
			return
		}
		go func() {
			defer func() { <-s.room }()
			defer s.drop(conn)
			if isUser(conn) {
				attend(ctx, to, conn)
			}
		}()
	}
}

// attend takes the requests of a client. When it goes away, those without an end are cancelled.
func attend(ctx context.Context, to *serving, conn *net.UnixConn) {
	c := newClient(to, deadlined{conn})
	c.failed = func(error) error {
		_ = conn.CloseRead() // ends read
		return nil
	}
	c.read(ctx, conn)
	c.leave()
}

// deadlined is a connection whose writes have a deadline.
type deadlined struct{ *net.UnixConn }

func (d deadlined) Write(b []byte) (int, error) {
	if err := d.SetWriteDeadline(time.Now().Add(answerTime)); err != nil {
		return 0, err
	}
	return d.UnixConn.Write(b)
}

// isUser reports whether the process at the other end is this user's.
func isUser(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	failed := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return failed == nil && err == nil && int(peer.Uid) == os.Geteuid()
}

func (s *socket) keep(conn *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[conn] = true
	return !s.closed
}

func (s *socket) drop(conn *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
	_ = conn.Close() // nothing is left to be written
}

// close removes the socket and ends the connections.
func (s *socket) close() {
	_ = s.listener.Close() // removes the file, too
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
}
