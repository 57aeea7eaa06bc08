// Package view serves a page that shows a run: the field as a heat map, the norms, the ranks, warnings and the end.
//
//	Server   the page and its assets, and a WebSocket for each open page   server.go, socket.go, page/
//	Board    the newest state of everything but the field                  board.go
//	Source   frames: values of the field at points of a window             frame.go
//	Files    the Board and Source of a finished run                        files.go
//
// A page asks for a frame of the window that it shows, and gets the next one when it has drawn the last. Whatever a
// page does or does not read, it holds up nobody else: the Board keeps the newest state only, and a page has one
// pending frame at most.
package view

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"jacobi/configs"
	"jacobi/internal/observe/output"
)

// Limits of a server.
const (
	maxPages       = 32 // that are open at a time
	maxStrangers   = 128
	headerTimeout  = 5 * time.Second
	requestTimeout = 10 * time.Second
	idleTimeout    = time.Minute
	maxHeader      = 16 << 10 // bytes
)

// Server serves the page of one Board and Source, to those who know its token.
type Server struct {
	listener  net.Listener
	host      string // of view.listen
	token     string
	board     *Board
	source    Source
	http      *http.Server
	pages     chan struct{} // a token for each page that is open
	strangers strangers
	// ctx ends with the server. closing is closed before: pages are then given what they lack.
	ctx     context.Context
	cancel  context.CancelFunc
	closing chan struct{}
	close   sync.Once
	seen    chan struct{} // closed when the first page has opened
	first   sync.Once
	open    sync.WaitGroup // pages
}

// Listen opens a port at address, HOST:PORT, where HOST stands for the loopback interface; port 0 is any free one. The
// token of its pages is made here, so that URL is known before there is something to show.
func Listen(address string) (*Server, error) {
	if err := configs.CheckLoopback(address); err != nil {
		return nil, fmt.Errorf("view.listen %q: %w", address, err)
	}
	listener, err := net.Listen("tcp", address)
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // without the address, which stands before
	}
	if err != nil {
		return nil, fmt.Errorf("view.listen %q: %w", address, err)
	}
	host, _, _ := net.SplitHostPort(address) // net.Listen has accepted it
	s := &Server{listener: listener, host: host, token: rand.Text(), pages: make(chan struct{}, maxPages),
		closing: make(chan struct{}), seen: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// URL returns the address of the page, with its token.
func (s *Server) URL() string {
	u := url.URL{Scheme: "http", Host: s.listener.Addr().String(), Path: "/",
		RawQuery: url.Values{"token": {s.token}}.Encode()}
	return u.String()
}

// Serve begins to serve.
func (s *Server) Serve(board *Board, source Source) {
	s.board, s.source = board, source
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:  log.New(io.Discard, "", 0), // of clients that break off
		ConnState: s.strangers.follow,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	go func() { _ = s.http.Serve(s.listener) }() // ends with Close
}

// Close gives the open pages what they lack, for at most this long, and ends the server. A second call does nothing.
func (s *Server) Close(grace time.Duration) {
	s.close.Do(func() {
		if s.http == nil {
			_ = s.listener.Close()
			return
		}
		close(s.closing)
		given := make(chan struct{})
		go func() { s.open.Wait(); close(given) }()
		select {
		case <-given:
		case <-time.After(grace):
		}
		s.cancel()
		_ = s.http.Close()
		<-given
	})
}

// policy lets the page use its own files and this server alone.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.index)
	mux.HandleFunc("GET /{asset}", asset)
	mux.HandleFunc("GET /shades", shades)
	mux.HandleFunc("GET /socket", s.socket)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(s.token)) != 1 {
			h.Set("Connection", "close") // others need the room
			http.Error(w, "The token is missing or wrong: open the whole URL that the program printed.",
				http.StatusUnauthorized)
			return
		}
		if !s.serves(r.Host) {
			h.Set("Connection", "close")
			http.Error(w, "The page has another host: open the URL that the program printed.",
				http.StatusMisdirectedRequest)
			return
		}
		s.strangers.forget(r.Context().Value(connKey{}).(net.Conn))
		mux.ServeHTTP(w, r)
	})
}

// serves reports whether the host of a request is this machine as its owner names it, directly or through ssh -L, at
// any port. A page of another host whose name leads here would count as of the same origin.
func (s *Server) serves(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(host), "["), "]")
	own, _, _ := net.SplitHostPort(s.listener.Addr().String())
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1", own, strings.ToLower(s.host)}, host)
}

// strangers are the connections that have not shown the token, the oldest first. Beyond maxStrangers a new one takes
// the place of the oldest, so strangers do not shut out those who have the token.
type strangers struct {
	mu    sync.Mutex
	conns []net.Conn
}

// follow takes the new state of a connection.
func (s *strangers) follow(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conns = append(s.conns, c); len(s.conns) > maxStrangers {
			_ = s.conns[0].Close() // its server notices, and closes it again
			s.conns = s.conns[1:]
		}
	case http.StateClosed:
		s.forget(c)
	}
}

// forget removes a connection that has shown the token or is closed.
func (s *strangers) forget(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = slices.DeleteFunc(s.conns, func(other net.Conn) bool { return other == c })
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// linger is how long the page of a run that has ended waits for a first browser, which may have to start.
const linger = 20 * time.Second

// Linger leaves the page of a run that has ended for a browser that has not opened it yet. It announces the wait by
// say. ctx and signals end it.
func (s *Server) Linger(ctx context.Context, say func(text string)) {
	select {
	case <-s.seen:
		return
	default:
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	late := time.NewTimer(linger)
	defer late.Stop()
	say(fmt.Sprintf("waiting up to %v for a browser at the view; Ctrl-C ends that", linger))
	select {
	case <-s.seen:
	case <-late.C:
	case <-ctx.Done():
	}
}

//go:embed page
var files embed.FS

// index serves the page. Its assets carry the token as the page does. The page is no template: a program with package
// text/template keeps all exported methods of all its types.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	page, err := fs.ReadFile(files, "page/index.html")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	token := html.EscapeString(url.QueryEscape(s.token))
	_, _ = w.Write(bytes.ReplaceAll(page, []byte("TOKEN"), []byte(token))) // to a client that may be gone
}

// asset serves a file of the page.
func asset(w http.ResponseWriter, r *http.Request) {
	data, err := fs.ReadFile(files, "page/"+r.PathValue("asset"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, r.PathValue("asset"), time.Time{}, bytes.NewReader(data))
}

// shades serves the colours of the two kinds of bars, 3 bytes each: first those of a bar that does not diverge.
func shades(w http.ResponseWriter, _ *http.Request) {
	var b []byte
	for _, diverging := range []bool{false, true} {
		list, err := output.Shades(diverging)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for _, c := range list {
			b = append(b, c.R, c.G, c.B)
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(b) // to a client that may be gone
}
