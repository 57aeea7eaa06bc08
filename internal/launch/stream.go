package launch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Greeting is the first thing that a far side says over a byte stream. What the stream brought before, a login shell's
// chatter, does not count.
type Greeting struct {
	Version string `json:"version"`
	Host    string `json:"host"`             // as it calls itself
	Node    string `json:"node,omitempty"`   // tells machines apart, whatever they are called; "" if it does not know
	Client  string `json:"client,omitempty"` // address from which it was reached; "" if it does not know
}

const (
	greetingPrefix = "jacobi-launcher "
	maxChatter     = 1 << 20 // bytes before the greeting
)

// ServeStream is Serve over a pair of byte streams, after a greeting.
func ServeStream(ctx context.Context, in io.Reader, out io.Writer, g Greeting, prepare Prepare) error {
	greeting, err := json.Marshal(g)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "\n%s%s\n", greetingPrefix, greeting); err != nil {
		return fmt.Errorf("greet the launcher: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	orders := make(chan Order)
	go func() {
		defer close(orders)
		for d := json.NewDecoder(in); ; {
			var o Order
			if d.Decode(&o) != nil {
				return
			}
			select {
			case orders <- o:
			case <-ctx.Done():
				return
			}
		}
	}()
	e := json.NewEncoder(out)
	return Serve(ctx, orders, func(n News) error { return e.Encode(n) }, prepare)
}

// errNoGreeting says that a stream ended, or went on for too long, without a greeting.
var errNoGreeting = errors.New("no launcher answered")

// readGreeting returns the greeting in r, which holds news from there on.
func readGreeting(r *bufio.Reader) (g Greeting, err error) {
	for chatter := 0; chatter < maxChatter; {
		line, err := r.ReadSlice('\n')
		chatter += len(line)
		if text, ok := strings.CutPrefix(string(line), greetingPrefix); ok && err == nil {
			if err := json.Unmarshal([]byte(text), &g); err != nil {
				return g, fmt.Errorf("greeting: %w", err)
			}
			return g, nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	return g, errNoGreeting
}
