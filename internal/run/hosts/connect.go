package hosts

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/net/wire"
)

// ConnectTimeout bounds each connection of a launcher to a NATS server.
const ConnectTimeout = 5 * time.Second

// Link is the launcher's connection to the NATS server of a run.
type Link struct {
	Conn *wire.Conn
	// Access holds, by host, the configuration with which its ranks connect to the same server.
	Access map[string]configs.NATS

	closeServer func() // ends the server if it serves this run only
}

// Close closes the connection and ends a server that serves this run only.
func (l *Link) Close() {
	l.Conn.Close()
	l.closeServer()
}

// Permitted returns the server's error if it has refused a subscription of the connection.
func (l *Link) Permitted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	if err := l.Conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("no answer from the NATS server: %w", err)
	}
	return l.Conn.Fault()
}

// Connect connects to the server that n names, or starts one for the run runID.
func (r *Reached) Connect(ctx context.Context, n configs.NATS, runID string, log *zap.Logger) (*Link, error) {
	s, err := r.server(n, runID, log)
	if err != nil {
		return nil, err
	}
	conn, err := wire.Connect(ctx, wire.Options{
		Server: s.own, RunID: runID, Name: "jacobi launcher", Timeout: ConnectTimeout, Logger: log,
	})
	if err != nil {
		s.close()
		return nil, fmt.Errorf("%s%w", s.key, err)
	}
	return &Link{Conn: conn, Access: s.access, closeServer: s.close}, nil
}

// server is a NATS server that runs.
type server struct {
	own    configs.NATS            // the launcher's access
	access map[string]configs.NATS // the ranks' access, by host
	key    string                  // before errors: the key that names the server; "" if the launcher started it
	close  func()
}

// server returns the server that n names, or one that it starts for the run runID.
func (r *Reached) server(n configs.NATS, runID string, log *zap.Logger) (server, error) {
	if n.URL == "" {
		return r.ownServer(n, runID, log)
	}
	if n.SecretFile == "" { // other users may have access to the server
		n.SecretFile = configs.Inline(rand.Text())
	}
	access, err := r.sameServer(n)
	return server{own: n, access: access, key: "nats.url: ", close: func() {}}, err
}
