package view

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
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
)

// Limits of a server.
const (
	maxPages       = 32 // that are open at a time
	maxConnections = 128
	headerTimeout  = 5 * time.Second
	requestTimeout = 10 * time.Second
	idleTimeout    = time.Minute
	maxHeader      = 16 << 10 // bytes
)

// Server serves the page of one Board and Source, to those who know its token.
type Server struct {
	listener net.Listener
	host     string // of view.listen
	token    string
	board    *Board
	source   Source
	http     *http.Server
	pages    chan struct{} // a token for each page that is open
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
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err // without the address, which stands before
		}
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
		ErrorLog:    log.New(io.Discard, "", 0), // of clients that break off
		ConnContext: withConn,
	}
	go func() { _ = s.http.Serve(&limited{Listener: s.listener, most: maxConnections}) }() // ends with Close
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
		admit(r.Context())
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

// limited is a listener of at most a number of connections. Beyond it, a new one takes the place of the oldest one that
// has not shown the token, so strangers do not shut out those who have it; without such a one it is closed at once.
type limited struct {
	net.Listener
	most int

	mu        sync.Mutex
	strangers []*counted // that have not shown the token, the oldest first
	admitted  int        // others that are open
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &counted{Conn: conn, from: l}
		oldest, room := l.enter(c)
		if oldest != nil {
			_ = oldest.Conn.Close() // its server notices, and closes it again
		}
		if room {
			return c, nil
		}
		_ = conn.Close()
	}
}

// enter counts c, and returns the connection that has to make room for it. room is false if there is none.
func (l *limited) enter(c *counted) (oldest *counted, room bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.strangers)+l.admitted >= l.most {
		if len(l.strangers) == 0 {
			return nil, false
		}
		oldest, l.strangers = l.strangers[0], l.strangers[1:]
		oldest.left = true
	}
	l.strangers = append(l.strangers, c)
	return oldest, true
}

// counted is a connection that makes room for another one when it is closed.
type counted struct {
	net.Conn
	from *limited
	// The mutex of from guards these.
	admitted, left bool
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}

func (c *counted) leave() {
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	switch {
	case c.left:
	case c.admitted:
		c.from.admitted--
	default:
		c.forget()
	}
	c.left = true
}

// forget removes c from the strangers.
func (c *counted) forget() {
	c.from.strangers = slices.DeleteFunc(c.from.strangers, func(other *counted) bool { return other == c })
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// admit keeps the connection of a request that has shown the token.
func admit(ctx context.Context) {
	c, ok := ctx.Value(connKey{}).(*counted)
	if !ok {
		return
	}
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	if !c.left && !c.admitted {
		c.forget()
		c.admitted = true
		c.from.admitted++
	}
}

// linger is how long the page of a run that has ended waits for a first browser.
const linger = 5 * time.Second

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
