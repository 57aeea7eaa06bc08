package view

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

const (
	maxWant      = 1 << 10                // bytes of a message of a page
	writeTimeout = 10 * time.Second       // a page that reads nothing for this long is given up
	pingInterval = 20 * time.Second       // finds pages whose machine is gone
	newsInterval = 100 * time.Millisecond // between messages of the board
)

// want is a message of a page: it asks for a frame with a number above After, and replaces the one before.
type want struct {
	Window
	After uint64 `json:"after"`

	number uint64 // of this want of the page, from 1 on
}

// answer is a message to a page that has asked for a frame; data is nil if there is none.
type answer struct {
	kind   websocket.MessageType
	data   []byte
	number uint64 // of the want
}

// open is a page that is open.
type open struct {
	*Server
	conn   *websocket.Conn
	frames chan answer // with frames and faults
	// waiting is the number of the newest want until the page knows that nothing follows: after a frame it asks again.
	waiting atomic.Uint64
	asked   atomic.Bool // for the first time
}

// socket serves one page until one of the two ends closes it.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	select {
	case s.pages <- struct{}{}:
		defer func() { <-s.pages }()
	default:
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	s.open.Add(1)
	defer s.open.Done()
	conn, err := websocket.Accept(w, r, nil) // of this origin only
	if err != nil {
		return // it has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxWant)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	p := &open{Server: s, conn: conn, frames: make(chan answer)}
	s.first.Do(func() { close(s.seen) })
	go func() { defer cancel(); p.read(ctx) }()
	if p.write(ctx) == nil {
		_ = conn.Close(websocket.StatusNormalClosure, "the end")
	}
}

// read takes the messages of the page until it is closed, and gets the frames that they ask for. Each replaces the one
// before.
func (p *open) read(ctx context.Context) {
	replace := func() {}
	for number := uint64(1); ; number++ {
		_, data, err := p.conn.Read(ctx)
		replace()
		if err != nil {
			return
		}
		w := want{number: number}
		if json.Unmarshal(data, &w) != nil {
			return
		}
		p.waiting.Store(number)
		p.asked.Store(true)
		once, cancel := context.WithCancel(ctx)
		answered := make(chan struct{})
		replace = func() { cancel(); <-answered }
		go func() {
			defer close(answered)
			if a := p.ask(once, w); a.data != nil {
				select {
				case p.frames <- a:
				case <-once.Done():
				}
			}
		}()
	}
}

// ask returns the answer to w.
func (p *open) ask(ctx context.Context, w want) answer {
	f, err := p.source.Frame(ctx, w.Window, w.After)
	switch {
	case err == nil:
		return answer{websocket.MessageBinary, f.encode(), w.number}
	case errors.Is(err, io.EOF):
		p.waiting.CompareAndSwap(w.number, 0)
		return answer{}
	case ctx.Err() != nil:
		return answer{}
	}
	return answer{websocket.MessageText, message("fault", err.Error()), w.number}
}

// write sends what changes and the frames. It returns nil when the server closes and the page has all there is.
func (p *open) write(ctx context.Context) error {
	ping, news := time.NewTicker(pingInterval), time.NewTicker(newsInterval)
	defer ping.Stop()
	defer news.Stop()
	closing, ends, version := p.closing, false, uint64(0)
	for {
		list, now := p.board.since(version)
		for _, message := range list {
			if err := p.send(ctx, websocket.MessageText, message); err != nil {
				return err
			}
		}
		version = now
		// A page asks for its first frame once it knows the run.
		if ends && p.waiting.Load() == 0 && (p.asked.Load() || !p.board.has(TopicRun)) {
			return nil
		}
		select {
		case <-news.C:
		case a := <-p.frames:
			if err := p.send(ctx, a.kind, a.data); err != nil {
				return err
			}
			if a.kind == websocket.MessageText { // a fault: the page need not ask again
				p.waiting.CompareAndSwap(a.number, 0)
			}
		case <-ping.C:
			if err := p.within(ctx, p.conn.Ping); err != nil {
				return err
			}
		case <-closing:
			closing, ends = nil, true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *open) send(ctx context.Context, kind websocket.MessageType, message []byte) error {
	return p.within(ctx, func(ctx context.Context) error { return p.conn.Write(ctx, kind, message) })
}

// within calls f with a context that ends after writeTimeout.
func (p *open) within(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return f(ctx)
}
