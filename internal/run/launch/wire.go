package launch

import (
	"syscall"
	"time"
)

// Both ends of a wire send something every beatInterval, and each gives the other up after silenceLimit. TCP alone
// would not notice a pulled cable for hours.
const (
	beatInterval = 2 * time.Second
	silenceLimit = 12 * time.Second
	// suspendLimit is how long the far end keeps ranks that the launcher has suspended. A launcher that is killed
	// meanwhile ends its ssh, but not its connection to an agent over NATS.
	suspendLimit = time.Hour
)

// Order is a message of the launcher to the far end, which starts ranks. The zero Order is a sign of life.
type Order struct {
	Spec   *Spec          `json:"spec,omitempty"` // start these ranks; sent once
	Signal syscall.Signal `json:"signal,omitempty"`
}

// News is a message of the far end to the launcher. The zero News is a sign of life.
type News struct {
	Started bool   `json:"started,omitempty"` // all ranks run
	Stopped bool   `json:"stopped,omitempty"` // the ranks are stopped, as the order SIGSTOP asked
	Refused string `json:"refused,omitempty"` // why no rank was started
	Line    *Line  `json:"line,omitempty"`
	Exit    *Exit  `json:"exit,omitempty"`
}

// Line is a line of a rank's output.
type Line struct {
	Rank   int    `json:"rank"`
	Stream Stream `json:"stream"`
	Text   []byte `json:"text"`
}

// Wire connects a launcher with one far end. It delivers messages in order.
type Wire interface {
	// Send sends an order. Several goroutines may call it. It may block while the wire is stuck; Close unblocks it.
	Send(Order) error
	// News returns the channel of news. It is closed after the last one.
	News() <-chan News
	// Close closes the wire in bounded time, which ends the orders at the far end. It may be called again.
	Close() error
	// Reason returns, once News is closed, why the wire broke; "" if that is unknown.
	Reason() string
}
