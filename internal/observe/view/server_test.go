package view

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"jacobi/solver"
)

// moving is a Source whose frames are numbered by the reader's calls: it always has a newer one.
type moving struct{}

func (moving) Frame(_ context.Context, w Window, after uint64) (*Frame, error) {
	return &Frame{Window: w, Number: after + 1, DType: solver.Float64, Scale: "linear",
		Values: make([]float64, w.Cols*w.Rows)}, nil
}

// none is a Source without frames.
type none struct{}

func (none) Frame(context.Context, Window, uint64) (*Frame, error) { return nil, io.EOF }

func serve(t *testing.T, source Source) (*Server, *Board) {
	t.Helper()
	s, err := Listen("127.0.0.1:0")
	must(t, err)
	b := NewBoard()
	s.Serve(b, source)
	t.Cleanup(func() { s.Close(0) })
	return s, b
}

// socketOf returns the address of the socket of a page.
func socketOf(s *Server) string {
	return strings.Replace(strings.Replace(s.URL(), "http:", "ws:", 1), "/?", "/socket?", 1)
}

// dial opens a page as a browser does.
func dial(t *testing.T, s *Server) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), socketOf(s), nil)
	must(t, err)
	c.SetReadLimit(64 << 20)
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

// expect reads until the page has the warning text.
func expect(t *testing.T, c *websocket.Conn, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		kind, data, err := c.Read(ctx)
		if err != nil {
			t.Fatalf("before %q: %v", text, err)
		}
		if want := fmt.Sprintf(`{"topic":"warnings","data":[%q]}`, text); kind == websocket.MessageText &&
			string(data) == want {
			return
		}
	}
}

func TestRequestsAreChecked(t *testing.T) {
	s, _ := serve(t, none{})
	good := s.URL()
	bare, _, _ := strings.Cut(good, "?")
	for _, c := range []struct {
		method, url string
		want        int
	}{
		{"GET", good, 200},
		{"GET", bare, 401},
		{"GET", bare + "?token=" + strings.Repeat("A", len(s.token)), 401},
		{"GET", bare + "app.js", 401},
		{"GET", bare + "socket", 401},
		{"GET", bare + "app.js?token=" + s.token, 200},
		{"GET", bare + "shades?token=" + s.token, 200},
		{"GET", bare + "nothing.js?token=" + s.token, 404},
		{"GET", bare + "..%2fview.go?token=" + s.token, 404},
		{"GET", bare + "socket?token=" + s.token, 426}, // no WebSocket is asked for
		{"POST", good, 405},
		{"DELETE", good, 405},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, c.url, nil)
		must(t, err)
		answer, err := http.DefaultClient.Do(req)
		must(t, err)
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.Body.Close() != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.url, answer.StatusCode, c.want)
		}
		if got := answer.Header.Get("Content-Security-Policy"); got != policy {
			t.Errorf("%s %s: policy %q", c.method, c.url, got)
		}
		if c.want == 401 && strings.Contains(string(body), s.token) {
			t.Errorf("%s %s: the answer has the token", c.method, c.url)
		}
	}
}

// Pages of other origins get no connection, even if they know the token.
func TestOtherOriginsAreRefused(t *testing.T) {
	s, _ := serve(t, none{})
	_, answer, err := websocket.Dial(t.Context(), socketOf(s), &websocket.DialOptions{
		HTTPHeader: http.Header{"Origin": {"http://elsewhere.example"}}})
	if err == nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("%v, want 403", answer)
	}
}

// A request for another host is refused, as is its page, even if they know the token: the host's name may lead here.
func TestOtherHostsAreRefused(t *testing.T) {
	s, _ := serve(t, none{})
	_, port, err := net.SplitHostPort(s.listener.Addr().String())
	must(t, err)
	for host, good := range map[string]bool{
		"127.0.0.1:" + port: true, "localhost:8080": true, "LOCALHOST": true, "[::1]:8080": true, "[::1]": true,
		"127.0.0.1": true, "evil.com": false, "evil.com:" + port: false, "127.0.0.1.evil.com": false,
		"localhost.evil.com:80": false, "10.0.0.1": false, "127.0.0.2:" + port: false,
	} {
		for _, scheme := range []string{"", "http://"} {
			header := http.Header{}
			if scheme != "" {
				header.Set("Origin", scheme+host)
			}
			c, answer, err := websocket.Dial(t.Context(), socketOf(s),
				&websocket.DialOptions{Host: host, HTTPHeader: header})
			if err == nil {
				_ = c.CloseNow()
			}
			if opened := err == nil; opened != good || !good && answer.StatusCode != http.StatusMisdirectedRequest {
				t.Errorf("host %s: %v, %v; want accepted: %v", host, answer, err, good)
			}
		}
	}
}

// stranger opens a connection without the token and sends text.
func stranger(t *testing.T, s *Server, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.listener.Addr().String())
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// Strangers, however many, do not shut out a page with the token, nor close one that is open.
func TestStrangersShutNobodyOut(t *testing.T) {
	s, b := serve(t, none{})
	open := dial(t, s)
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET / HTTP"} {
		for range 2 * maxStrangers {
			stranger(t, s, text)
		}
		dial(t, s)
	}
	refused := stranger(t, s, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	answer, err := io.ReadAll(refused) // until the server closes
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 401 ") {
		t.Errorf("%q, %v; want 401 and the end", answer, err)
	}
	b.Set(TopicWarnings, []string{"still open"})
	expect(t, open, "still open")
}

func TestAddressesThatAreRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	const wanted = ": must be an address of this machine alone with a port, as in 127.0.0.1:0"
	for address, want := range map[string]string{
		"":                    wanted,
		"127.0.0.1":           wanted,
		":8080":               wanted,
		"0.0.0.0:8080":        wanted,
		"192.0.2.1:80":        wanted,
		"example.org:80":      wanted,
		"127.0.0.1:x":         wanted,
		"127.0.0.1:70000":     wanted,
		"127.0.0.1:":          wanted,
		taken.Addr().String(): ": bind: address already in use",
	} {
		s, err := Listen(address)
		if err == nil {
			s.Close(0)
		}
		if want = fmt.Sprintf("view.listen %q%s", address, want); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", address, err, want)
		}
	}
}

// Ten pages see all news, whatever another page does that reads nothing and asks for the largest frames.
func TestNobodyWaitsForAPageThatReadsNothing(t *testing.T) {
	s, b := serve(t, moving{})
	idle := dial(t, s)
	var pages []*websocket.Conn
	for range 10 {
		pages = append(pages, dial(t, s))
	}
	w := want{Window: Window{X1: 1024, Y1: 1024, Cols: 1024, Rows: 1024}}
	for i := range 100 {
		w.After = uint64(i)
		data, err := json.Marshal(w)
		must(t, err)
		must(t, idle.Write(t.Context(), websocket.MessageText, data))
		b.Set(TopicWarnings, []string{fmt.Sprint(i)})
	}
	for _, c := range pages {
		expect(t, c, "99")
	}
}

// ending is a Source of two frames. The second one comes when over is closed.
type ending struct{ over chan struct{} }

func (e ending) Frame(ctx context.Context, w Window, after uint64) (*Frame, error) {
	if after == 1 {
		<-e.over
	}
	if after > 1 {
		return nil, io.EOF
	}
	return moving{}.Frame(ctx, w, after)
}

// ask has a page ask for a frame with a number above after.
func ask(t *testing.T, c *websocket.Conn, after uint64) {
	t.Helper()
	data, err := json.Marshal(want{Window: Window{X1: 3, Y1: 2, Cols: 3, Rows: 2}, After: after})
	must(t, err)
	must(t, c.Write(t.Context(), websocket.MessageText, data))
}

// expectFrame reads the frame with this number.
func expectFrame(t *testing.T, c *websocket.Conn, number uint64) {
	t.Helper()
	kind, got, err := c.Read(t.Context())
	if want := fmt.Sprintf(`"number":%d,`, number); err != nil || kind != websocket.MessageBinary ||
		!strings.Contains(string(got), want) {
		t.Fatalf("%v %q, %v, want a frame with %s", kind, got, err, want)
	}
}

// expectEnd reads the end of the connection.
func expectEnd(t *testing.T, c *websocket.Conn) {
	t.Helper()
	if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("%v, want a normal closure", err)
	}
}

// A page that still draws a frame when the server ends asks for the last one after that, and gets it.
func TestCloseGivesTheLastFrame(t *testing.T) {
	over := make(chan struct{})
	s, b := serve(t, ending{over})
	c := dial(t, s)
	ask(t, c, 0)
	expectFrame(t, c, 1)
	close(over)
	go s.Close(time.Minute)
	<-s.closing
	b.Set(TopicWarnings, []string{"last"})
	expect(t, c, "last")
	ask(t, c, 1)
	expectFrame(t, c, 2)
	ask(t, c, 2)
	expectEnd(t, c)
}

// A page of a run that nothing is known of does not hold up the end: it has nothing to ask for.
func TestCloseWithoutARun(t *testing.T) {
	s, b := serve(t, none{})
	b.Set(TopicWarnings, []string{"last"})
	c := dial(t, s)
	expect(t, c, "last")
	go s.Close(time.Minute)
	expectEnd(t, c)
}

// A page that has just opened when the server ends asks for its first frame, and gets it.
func TestCloseAwaitsTheFirstWant(t *testing.T) {
	s, b := serve(t, ending{make(chan struct{})})
	b.Set(TopicRun, Run{})
	c := dial(t, s)
	<-s.seen
	go s.Close(time.Minute)
	<-s.closing
	b.Set(TopicWarnings, []string{"last"})
	expect(t, c, "last")
	ask(t, c, 0)
	expectFrame(t, c, 1)
	ask(t, c, 2)
	expectEnd(t, c)
}

// replacing is a Source that has nothing for the first want of a page, once another one replaces it. The frame for that
// one is there when there is closed.
type replacing struct{ asked, there chan struct{} }

func (r replacing) Frame(ctx context.Context, w Window, after uint64) (*Frame, error) {
	switch after {
	case 0:
		close(r.asked)
		<-ctx.Done()
		return nil, io.EOF
	case 1:
		<-r.there
		return moving{}.Frame(ctx, w, after)
	}
	return nil, io.EOF
}

// When the server ends, a page gets the frame of its newest want, although nothing is there for an older one.
func TestCloseAnswersTheNewestWant(t *testing.T) {
	source := replacing{make(chan struct{}), make(chan struct{})}
	s, b := serve(t, source)
	c := dial(t, s)
	ask(t, c, 0)
	<-source.asked
	ask(t, c, 1)
	b.Set(TopicWarnings, []string{"replaced"})
	expect(t, c, "replaced")
	go s.Close(time.Minute)
	<-s.closing
	b.Set(TopicWarnings, []string{"last"})
	expect(t, c, "last")
	close(source.there)
	expectFrame(t, c, 2)
	ask(t, c, 2)
	expectEnd(t, c)
}

func TestTooManyPages(t *testing.T) {
	s, _ := serve(t, none{})
	for range maxPages {
		dial(t, s)
	}
	_, answer, err := websocket.Dial(t.Context(), socketOf(s), nil)
	if err == nil || answer == nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%v, want 503", answer)
	}
}

// The page of a run that has ended waits for a first browser, and for no other one.
func TestLingerWaitsForTheFirstPage(t *testing.T) {
	s, _ := serve(t, none{})
	var said []string
	s.Linger(t.Context(), func(text string) {
		said = append(said, text)
		dial(t, s)
	})
	s.Linger(t.Context(), func(text string) { said = append(said, text) })
	want := []string{"waiting up to 20s for a browser at the view; Ctrl-C ends that"}
	select {
	case <-s.seen:
	default:
		t.Error("the wait is over, and no page was opened")
	}
	if !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// The wait ends with its context.
func TestLingerEnds(t *testing.T) {
	s, _ := serve(t, none{})
	ctx, cancel := context.WithCancel(t.Context())
	s.Linger(ctx, func(string) { cancel() })
	select {
	case <-s.seen:
		t.Error("a page was opened")
	default:
	}
}
