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

// Greeting is the first message of a far end over a byte stream. Anything before it, such as the output of a login
// shell, is skipped.
type Greeting struct {
	Version string `json:"version"`
	Host    string `json:"host"`             // the machine's own host name
	Node    string `json:"node,omitempty"`   // identifies the machine independently of its names; "" if unknown
	Client  string `json:"client,omitempty"` // address from which ssh came; "" if unknown
}

const (
	greetingPrefix = "jacobi-launcher "
	maxChatter     = 1 << 20 // bytes that may precede the greeting
)

// ServeStream writes the greeting to out, then runs Serve with orders from in and news to out, as JSON.
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

// errNoGreeting is the error of a stream that ended, or brought maxChatter bytes, without a greeting.
var errNoGreeting = errors.New("no launcher answered")

// readGreeting reads r up to and including the greeting. The rest of r is news.
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
