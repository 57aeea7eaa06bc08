// Package desk carries the runs of a session from the launcher to rank 0, and what became of them back.
package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/wire"
)

// Env names the variable by which a launcher has its ranks do many runs.
const Env = "JACOBI_STUDY"

// Order is a run that the ranks are to do.
type Order struct {
	Number   int             `json:"number"` // of the run in its session, from 1
	Document json.RawMessage `json:"document,omitempty"`
	Hash     bool            `json:"hash,omitempty"`     // the report has the SHA-256 of the field
	Progress bool            `json:"progress,omitempty"` // the run publishes its progress
	End      bool            `json:"end,omitempty"`      // no run follows
}

// Answer tells what became of a run. Number 0 says that rank 0 takes orders.
type Answer struct {
	Number  int             `json:"number"`
	Report  json.RawMessage `json:"report,omitempty"`
	Refused string          `json:"refused,omitempty"` // why the run has not begun
	Failed  string          `json:"failed,omitempty"`  // why it has no end
}

// Conn is the part of a connection that a Desk needs.
type Conn interface {
	pubsub.Publisher
	MaxPayload() int64
	Subscribe(subject string, handle func(pubsub.Message)) (pubsub.Subscription, error)
	FlushWithContext(ctx context.Context) error
}

// Desk is one end of the way between the launcher and rank 0.
type Desk struct {
	stream *wire.Stream
	sub    pubsub.Subscription
}

// The subjects on which the two ends listen.
const (
	orders  = "orders"
	answers = "answers"
)

// flushTimeout bounds the wait for the server's answer.
const flushTimeout = 10 * time.Second

// AtLauncher opens the launcher's end, before the ranks start.
func AtLauncher(ctx context.Context, conn Conn, runID string) (*Desk, error) {
	return open(ctx, conn, roster.Subject(runID, answers), roster.Subject(runID, orders))
}

// AtRank opens the end of rank 0.
func AtRank(ctx context.Context, conn Conn, runID string) (*Desk, error) {
	return open(ctx, conn, roster.Subject(runID, orders), roster.Subject(runID, answers))
}

func open(ctx context.Context, conn Conn, own, other string) (*Desk, error) {
	d := &Desk{stream: wire.NewStream(wire.StreamOptions{Conn: conn, Subject: other})}
	var err error
	d.sub, err = conn.Subscribe(own, func(m pubsub.Message) {
		if f, err := wire.ParseFrame(m.Data); err == nil {
			d.stream.Receive(f)
		}
	})
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		err = conn.FlushWithContext(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", own, err)
	}
	return d, nil
}

// Close ends all calls of this end.
func (d *Desk) Close() {
	_ = d.sub.Unsubscribe() // fails only on a closed connection
	d.stream.Stop()
}

// Send sends an Order or an Answer. It does not wait until the other end has it.
func (d *Desk) Send(ctx context.Context, message any) error {
	data, err := json.Marshal(message)
	if err == nil {
		err = d.stream.Send(ctx, data)
	}
	if err != nil {
		return fmt.Errorf("send a message of the study: %w", err)
	}
	return nil
}

// Flush returns once the other end has all that was sent.
func (d *Desk) Flush(ctx context.Context) error { return d.stream.Flush(ctx) }

// Recv waits for the next Order or Answer, which it stores in message.
func (d *Desk) Recv(ctx context.Context, message any) error {
	data, err := d.stream.Recv(ctx)
	if err == nil {
		err = json.Unmarshal(data, message)
	}
	if err != nil {
		return fmt.Errorf("receive a message of the study: %w", err)
	}
	return nil
}
