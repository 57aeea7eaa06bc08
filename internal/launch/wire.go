package launch

import (
	"syscall"
	"time"
)

// Both ends of a wire say something every beatInterval, and give the other one up after silenceLimit: a cable that is
// pulled says nothing for hours.
const (
	beatInterval = 2 * time.Second
	silenceLimit = 12 * time.Second
	// suspendLimit is how long the far end keeps ranks for a launcher that has suspended them. A launcher that is
	// killed meanwhile ends an ssh, but not a way over NATS.
	suspendLimit = time.Hour
)

// Order is what a launcher tells the side that starts ranks. With nothing set it is a sign of life.
type Order struct {
	Spec   *Spec          `json:"spec,omitempty"` // start these; once
	Signal syscall.Signal `json:"signal,omitempty"`
}

// News is what that side tells the launcher. With nothing set it is a sign of life.
type News struct {
	Started bool   `json:"started,omitempty"` // all ranks run
	Stopped bool   `json:"stopped,omitempty"` // as the order SIGSTOP has asked for
	Refused string `json:"refused,omitempty"` // none runs, and why
	Line    *Line  `json:"line,omitempty"`
	Exit    *Exit  `json:"exit,omitempty"`
}

// Line is a line of a rank's output.
type Line struct {
	Rank   int    `json:"rank"`
	Stream Stream `json:"stream"`
	Text   []byte `json:"text"`
}

// Wire is a launcher's way to one side that starts ranks. It keeps the order of what it carries.
type Wire interface {
	// Send may be called by several goroutines. It may block as long as the wire is stuck; Close ends that.
	Send(Order) error
	// News is closed when nothing more will come.
	News() <-chan News
	// Close ends the wire, in bounded time: the orders of the other side end. It may be called again.
	Close() error
	// Reason says, once News is closed, why the wire broke; "" if it does not know.
	Reason() string
}
