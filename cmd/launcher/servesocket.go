package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/observe/events"
	"jacobi/internal/run/launch"
)

const (
	// answerTime is how long a client may take to read an answer. One that takes longer has gone.
	answerTime = 30 * time.Second
	// maxSocketPath is how long the kernel lets the path of a socket be, in bytes.
	maxSocketPath = 107
	// acceptPause is how long accept waits after a failure, as where no file can be opened for a moment.
	acceptPause = 100 * time.Millisecond
)

// socket is a Unix socket at which clients of this user ask for runs.
type socket struct {
	listener *net.UnixListener
	lock     *dirlock.Lock
	room     chan struct{} // holds an element for each client
}

// listenAt opens a socket of mode 0600. Its directory has to be this user's, with the mode 0700. A socket whose process
// has ended is replaced: that process has no lock any more.
func listenAt(path string) (s *socket, err error) {
	s = &socket{room: make(chan struct{}, maxClients)}
	defer func() {
		if err != nil {
			s, err = nil, errors.Join(fmt.Errorf("--socket %q: %w", path, err), s.close())
		}
	}()
	if err := isPrivate(filepath.Dir(path)); err != nil {
		return s, err
	}
	if len(path) > maxSocketPath {
		return s, fmt.Errorf("%d bytes; at most %d are allowed", len(path), maxSocketPath)
	}
	if s.lock, err = dirlock.TakeFile(path, "serve"); err != nil {
		return s, err
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return s, errors.New("the file exists, and is no socket")
		}
		if err := os.Remove(path); err != nil {
			return s, err
		}
	}
	if s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		return s, err
	}
	return s, os.Chmod(path, 0o600)
}

// isPrivate returns an error if a directory is not this user's alone.
func isPrivate(dir string) error {
	var own unix.Stat_t
	if err := unix.Stat(dir, &own); err != nil {
		return fmt.Errorf("its directory: %w", err)
	}
	if mode := own.Mode & 0o777; mode != 0o700 || int(own.Uid) != os.Geteuid() {
		return fmt.Errorf("its directory has the mode %04o and the owner %d; it must be yours, with the mode 0700",
			mode, own.Uid)
	}
	return nil
}

// accept takes the requests of clients until close. One client too many is told so.
func (s *socket) accept(ctx context.Context, to *serving) {
	for {
		conn, err := s.listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
			continue
		case !isUser(conn):
			conn.Close()
			continue
		}
		select {
		case s.room <- struct{}{}:
			to.all.Go(func() {
				attendAt(ctx, conn, to)
				<-s.room
			})
		default:
			tellFull(conn)
		}
	}
}

// attendAt does the requests of a client of a socket.
func attendAt(ctx context.Context, conn *net.UnixConn, to *serving) {
	raw, err := conn.SyscallConn()
	if err == nil {
		unread := func() {
			_ = raw.Control(func(fd uintptr) { launch.AwaitUnread(int(fd)) }) // fails only on a closed connection
		}
		_ = to.attend(ctx, conn, patient{conn, awake.Of(ctx), answerTime}, unread) // fails once it has gone
	}
	_ = errors.Join(conn.CloseRead(), conn.CloseWrite()) // end unread
	_ = conn.Close()
}

// tellFull ends the connection of a client that is one too many.
func tellFull(conn *net.UnixConn) {
	end := events.End{ExitCode: launch.ExitFailed, Error: fmt.Sprintf("%d clients are connected, and no more are taken",
		maxClients)}
	_, _ = conn.Write(lineOf(nil, events.Event{Event: "end", End: &end})) // a new connection has room for a line
	_ = conn.Close()
}

// patient is a connection on which a write may take a while. Time in which this process is stopped does not count.
type patient struct {
	*net.UnixConn
	clock *awake.Clock
	while time.Duration
}

func (p patient) Write(b []byte) (int, error) {
	late := p.clock.AfterFunc(p.while, func() {
		_ = p.SetWriteDeadline(time.Now()) // fails only on a closed connection
	})
	defer late.Stop()
	return p.UnixConn.Write(b)
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

// close removes the socket, and gives its lock back.
func (s *socket) close() (err error) {
	if s.listener != nil {
		err = s.listener.Close() // removes the file, too
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Release())
	}
	return err
}
