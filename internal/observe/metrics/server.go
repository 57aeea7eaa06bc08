package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"jacobi/configs"
)

// Path is where a Server answers.
const Path = "/metrics"

// A Server bounds what it does for strangers.
const (
	headerTimeout = 5 * time.Second
	timeout       = 10 * time.Second // of a whole request, and of its answer
	idleTimeout   = time.Minute
	maxHeader     = 16 << 10
	maxRequests   = 8 // at a time
	closeTimeout  = time.Second
)

// Server serves a Run or a Node over HTTP.
type Server struct {
	run      *Run // nil for a Node
	listener net.Listener
	http     *http.Server
	serving  sync.WaitGroup
	after    atomic.Bool   // scrapes from now on show the end of the run
	scraped  chan struct{} // closed after the first such scrape
	answered sync.Once
}

// Serve serves run at metrics.listen, and says where that is; without the key it returns nil.
func Serve(c configs.Metrics, run *Run, say func(text string)) (*Server, error) {
	if c.Listen == "" {
		return nil, nil
	}
	s, err := Listen(c.Listen, run)
	if err == nil {
		say("metrics: " + s.URL())
	}
	return s, err
}

// Listen serves run at address, HOST:PORT, until Close. Port 0 is any free one.
func Listen(address string, run *Run) (*Server, error) {
	s, err := listen("metrics.listen", address, run)
	if err == nil {
		s.run = run
	}
	return s, err
}

// ListenNode serves node at address, which is like that of Listen.
func ListenNode(address string, node *Node) (*Server, error) {
	return listen("--metrics", address, node)
}

// listen serves what at address, the value of option.
func listen(option, address string, what prometheus.Collector) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // without the address, which stands before
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", option, address, err)
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(what); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: %w", err), l.Close())
	}
	s := &Server{listener: l, scraped: make(chan struct{})}
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxRequests, Timeout: timeout})
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, q *http.Request) {
		last := s.after.Load()
		handler.ServeHTTP(w, q)
		if last {
			s.answered.Do(func() { close(s.scraped) })
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "The metrics are at %s.\n", Path)
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: timeout, WriteTimeout: timeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader}
	s.serving.Go(func() { _ = s.http.Serve(l) }) // ends with Close
	return s, nil
}

// Run returns the Run that is served.
func (s *Server) Run() *Run { return s.run }

// URL returns where the metrics are.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + Path }

// Linger leaves the final values for one more scrape, for at most d. It announces the wait by say. ctx and signals end
// it. For a nil Server, and without d, it does nothing.
func (s *Server) Linger(ctx context.Context, d time.Duration, say func(text string)) {
	if s == nil || d <= 0 {
		return
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	s.after.Store(true)
	say(fmt.Sprintf("waiting up to %s for a scrape of the metrics", d))
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-s.scraped:
	case <-late.C:
	case <-ctx.Done():
	}
}

// Close ends the server. Answers that are under way have closeTimeout. For a nil Server it does nothing.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	s.serving.Wait()
	return err
}
