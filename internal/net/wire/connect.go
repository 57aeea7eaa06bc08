// Package wire connects to NATS: it finds the server, identifies this process to it and, if there is a secret, seals
// messages so that other users of the server can neither read nor forge them. On top of messages, which may be lost, it
// has streams that lose nothing and requests that are repeated until they are answered.
package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/awake"
)

const (
	dialTimeout = 2 * time.Second // of the first attempt to connect; each further one has twice as long
	lastTimeout = 8 * time.Second // at most: where thousands of ranks share few cores, they all need that long
	firstWait   = 100 * time.Millisecond
	lastWait    = time.Second
	// A server that leaves without closing its connections is noticed after three pings without an answer. They come
	// every pingInterval, or pingsPerTimeout times in Options.Timeout if that is less often: a server that is slow, or
	// a rank that is, must not lose its connections.
	pingInterval    = 5 * time.Second
	pingsPerTimeout = 6
	maxLogged       = 32 // different errors of a connection that are logged, each once

	subjectRoot = "jacobi" // first token of all subjects
)

var (
	// errRefused replaces the client library's "no servers available".
	errRefused = errors.New("connection refused")
	// errLateIdentity is how the client library tells the server's "Authentication Timeout", in lower case.
	errLateIdentity = errors.New("nats: authentication timeout")
)

// Options describe the server and the use of a connection.
type Options struct {
	Server configs.NATS
	// messages are sealed for this run if Server has a secret; "": never sealed
	RunID   string
	Name    string        // of this connection, shown to the server's operator
	Timeout time.Duration // for the first connection, retries included
	Logger  *zap.Logger   // may be nil
	Quiet   bool          // do not log a lost server or its return: another connection of the process does
	Refused func(error)   // receives the first refusal of a subscription or of a subject of this program; may be nil
	// Unsealed counts the messages that are refused because they are not sealed for this run. Several connections may
	// share it; nil: each has its own.
	Unsealed *atomic.Uint64
}

// Connect connects to a NATS server. The connection reconnects for ever, within a second of the server's return. No
// error and no log line holds a user, a password or a token.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	where, err := publicURL(o.Server.URL)
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	fail := func(err error) (*Conn, error) {
		return nil, fmt.Errorf("connect to the NATS server at %s: %w", where, explain(o.Server, err))
	}
	f := &faults{server: o.Server, where: where, notify: o.Refused}
	opts, err := options(o, f)
	if err != nil {
		return fail(err)
	}
	s, err := newSeal(o.Server.SecretFile, o.RunID)
	if err != nil {
		return fail(err)
	}
	nc, err := dialUntil(ctx, o, opts)
	if err != nil {
		return fail(err)
	}
	f.mu.Lock()
	f.nc = nc
	f.mu.Unlock()
	c := &Conn{nc: nc, seal: s, log: o.Logger, faults: f, refused: o.Unsealed}
	if c.refused == nil {
		c.refused = new(atomic.Uint64)
	}
	return c, nil
}

// dialUntil repeats dial until the server answers or the timeout is over.
func dialUntil(ctx context.Context, o Options, opts []nats.Option) (*nats.Conn, error) {
	ctx, cancel := awake.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var before error // of the last attempt that ended before ctx, or else of the first one
	wait, timeout := firstWait, dialTimeout
	for ; ; wait, timeout = min(2*wait, lastWait), min(2*timeout, lastTimeout) {
		begin := time.Now()
		conn, err := dial(ctx, o.Server.URL, append(slices.Clip(opts), nats.Timeout(timeout)))
		switch {
		case err == nil:
			return conn, nil
		case ctx.Err() == nil && !temporary(err, time.Since(begin)):
			return nil, err
		case ctx.Err() == nil || before == nil:
			before = err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, before
			}
			return nil, fmt.Errorf("%w (%w)", before, context.Cause(ctx))
		}
	}
}

// dial makes one attempt. It does not outlast ctx.
func dial(ctx context.Context, url string, opts []nats.Option) (*nats.Conn, error) {
	type result struct {
		conn *nats.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := nats.Connect(url, opts...)
		if errors.Is(err, nats.ErrNoServers) {
			err = errRefused
		}
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.conn != nil {
				r.conn.Close()
			}
		}()
		return nil, fmt.Errorf("no answer in time: %w", context.Cause(ctx))
	}
}

func options(o Options, f *faults) ([]nats.Option, error) {
	logged := map[string]bool{} // the client calls the handler from one goroutine
	opts := []nats.Option{
		nats.Name(o.Name),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(func(attempts int) time.Duration {
			f.look()
			wait := min(firstWait<<min(attempts-1, 4), lastWait)
			return wait/2 + rand.N(wait/2)
		}),
		nats.PingInterval(max(pingInterval, o.Timeout/pingsPerTimeout)),
		nats.CustomInboxPrefix(inboxPrefix(o.RunID)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if f.refuse(err) {
				return // the user of the connection reports it
			}
			if text := err.Error(); !logged[text] && len(logged) < maxLogged {
				logged[text] = true
				o.Logger.Warn("NATS", zap.Error(err))
			}
		}),
	}
	opts = append(opts,
		nats.IgnoreAuthErrorAbort(), // credentials may be renewed, here or at the server
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { f.failed(err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			f.failed(nil)
			if err != nil && !o.Quiet {
				o.Logger.Warn("lost the NATS server, reconnecting", zap.Error(err))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			f.failed(nil)
			if !o.Quiet {
				o.Logger.Info("reconnected to the NATS server")
			}
		}))
	more, err := identify(o.Server)
	return append(opts, more...), err
}

// inboxPrefix returns the prefix of subjects for answers. It lies under this program's subjects, so that a server need
// not permit others.
func inboxPrefix(runID string) string {
	if runID == "" {
		return subjectRoot + ".inbox"
	}
	return subjectRoot + "." + runID + ".inbox"
}

// temporary reports whether another attempt may succeed after one that took so long: the network refused the
// connection, not the server, or many ranks connect at once and the server or this rank is slow. The server then closes
// the connection before the rank has identified itself. It closes one that it refuses at once.
func temporary(err error, took time.Duration) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Timeout()) || errors.Is(err, errRefused) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, errLateIdentity) || ended(err) && took >= dialTimeout || errors.Is(err, context.DeadlineExceeded)
}

// publicURL returns a list of URLs without their users and passwords. Its errors do not quote the URLs.
func publicURL(list string) (string, error) {
	var public []string
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			return "", errors.New("connect to the NATS server: the URL is empty; it looks like nats://host:4222")
		}
		if !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return "", errors.New("connect to the NATS server: the URL does not parse (it may hold a secret and is " +
				"not shown); it looks like nats://user:password@host:4222")
		}
		public = append(public, u.Scheme+"://"+u.Host)
	}
	return strings.Join(public, ","), nil
}
