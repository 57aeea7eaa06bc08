// Package pubsub has the types in which a connection that delivers messages by subject meets its users. It names no
// client library, so that users do not either; internal/net/wire implements it over NATS.
//
// Messages are delivered at most once. Messages of one sender on one subject keep their order while both connections
// live. A subject is a list of tokens separated by dots.
package pubsub

import (
	"context"
	"errors"
)

// ErrClosed reports a connection that was closed on this side.
var ErrClosed = errors.New("nats: connection closed")

// ErrLost reports a message that may not have been sent, because the connection broke or is being made again. The same
// message may be sent again.
var ErrLost = errors.New("message lost")

// Message is a message as a subscriber receives it. Nothing else uses the memory of Data.
type Message struct {
	Subject string
	Reply   string // the subject for an answer; "" if none is wanted
	Data    []byte
}

// Status is the state of a connection.
type Status string

// The states that users tell from the others.
const (
	Connected Status = "CONNECTED"
	Closed    Status = "CLOSED" // on this side, for good
)

// Subscription is the interest in a subject. It lasts until Unsubscribe, and across reconnections.
type Subscription interface {
	// SetPendingLimits bounds the messages that wait for the handler, in number and in bytes; -1: no bound. Further
	// messages are dropped.
	SetPendingLimits(messages, bytes int) error
	// Dropped returns the number of messages dropped so far. It fails after Unsubscribe.
	Dropped() (int, error)
	// Unsubscribe ends the subscription. It does nothing if the connection is closed.
	Unsubscribe() error
}

// Conn is a connection. Its methods may be called from several goroutines.
type Conn interface {
	// Publish sends a message. It keeps no reference to data. Its error wraps ErrLost if another attempt may succeed,
	// and ErrClosed after Close.
	Publish(subject string, data []byte) error
	// Subscribe calls handle for every message on subject, one at a time. A token "*" matches any token.
	Subscribe(subject string, handle func(Message)) (Subscription, error)
	// RequestWithContext sends data and waits for the first answer.
	RequestWithContext(ctx context.Context, subject string, data []byte) (Message, error)
	// FlushWithContext returns when the server has everything that was published and subscribed before, but for what
	// was lost when the connection broke meanwhile. It fails after Close and with ctx alone.
	FlushWithContext(ctx context.Context) error
	// MaxPayload returns the maximum size of a message, in bytes.
	MaxPayload() int64
	Status() Status
	// Close closes the connection. Without a flush before, published messages may be lost.
	Close()
}
