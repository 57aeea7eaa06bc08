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
	"slices"
	"strings"
	"sync"
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
