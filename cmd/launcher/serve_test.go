package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/observe/events"
	"jacobi/internal/run/study"
)

// office is what does requests, with ranks that a test plays.
type office struct {
	*serving
	t      *testing.T
	socket *socket
	path   string
	given  chan study.Job // that the ranks have
	finish chan study.Result
	stop   func()       // ends the ranks
	leave  func() error // closes the socket
}

// openOffice listens at a socket. A job that has no fault is given, and has the next result of finish, or that of a
// cancelled one.
func openOffice(t *testing.T) *office {
	t.Helper()
	base, err := configs.LoadBase(configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o := &office{serving: newServing(base, 1), t: t, path: filepath.Join(dir, "s"), given: make(chan study.Job),
		finish: make(chan study.Result)}
	if o.socket, err = listenAt(o.path); err != nil {
		t.Fatal(err)
	}
	o.all.Go(func() { o.socket.accept(t.Context(), o.serving) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.work(ctx)
	}()
	o.leave = sync.OnceValue(o.socket.close)
	o.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(func() {
		o.stop()
		if err := o.leave(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// await returns once the state is as ready says.
func (o *office) await(ready func() bool) {
	for {
		o.mu.Lock()
		ok := ready()
		o.mu.Unlock()
		if ok {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (o *office) work(ctx context.Context) {
	for {
		job, _, err := o.give(ctx)
		if err != nil {
			return
		}
		r := study.Result{}
		if job.Fault != nil {
			r.Refused = job.Fault.Error()
		} else {
			select {
			case o.given <- job:
			case <-ctx.Done():
				return
			}
			select {
			case r = <-o.finish:
			case <-job.Wanted.Done():
				r.Failed = context.Cause(job.Wanted).Error()
			case <-ctx.Done():
				return
			}
		}
		if err := o.done(job, r); err != nil {
			o.t.Error(err)
		}
	}
}

// caller is a client of the socket.
type caller struct {
	t *testing.T
	*net.UnixConn
	lines *bufio.Reader
}

func (o *office) dial() *caller {
	o.t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: o.path, Net: "unix"})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { conn.Close() })
	return &caller{o.t, conn, bufio.NewReader(conn)}
}

func (c *caller) ask(lines ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c, strings.Join(lines, "\n")+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads an end: its id and its error.
func (c *caller) answer() string {
	c.t.Helper()
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	var a struct {
		ID json.RawMessage
		events.Event
	}
	if err := json.Unmarshal(line, &a); err != nil || a.End == nil || len(line) > 8<<10 {
		c.t.Fatalf("%d bytes, %v: %.2000s", len(line), err, line)
	}
	return fmt.Sprintf("%s: %s", a.ID, a.End.Error)
}

// ends checks that the connection ends.
func (c *caller) ends() {
	c.t.Helper()
	if line, err := c.lines.ReadString('\n'); !errors.Is(err, io.EOF) {
		c.t.Errorf("%v: %q; want the end", err, line)
	}
}

// A line that is no request is answered at once and in few words, with its id where that can be read.
func TestServeLinesThatAreNone(t *testing.T) {
	t.Parallel()
	const fields = ": the fields are id, keys, hash and progress, or cancel alone"
	const anID = "a number, or text of at most 200 bytes"
	const alone = "no request: cancel: stands alone, without other fields"
	const sections = "launcher --dry-run prints all keys"
	long := strings.Repeat("x", 1_000_000)
	var many []string
	for i := range 80_000 {
		many = append(many, fmt.Sprintf(`"k%d":1`, i))
	}
	first := ""
	for _, i := range []int{0, 1, 10, 100, 1000, 10000, 10001, 10002, 10003, 10004} {
		first += fmt.Sprintf("unknown key k%d (request): %s\n", i, sections)
	}
	first += "and 79990 more faults"
	var unknown []string
	for i := range 4 {
		unknown = append(unknown, fmt.Sprintf("unknown key zzzz%d (request): %s", i, sections))
	}
	c := openOffice(t).dial()
	for _, l := range []struct{ line, want string }{
		{`{"cancel": null}`, "null: no request: cancel: must be the id of a request, " + anID},
		{`{"cancel": [1]}`, "null: no request: cancel: must be the id of a request, " + anID},
		{`{"cancel": 1, "keys": {}}`, "null: " + alone},
		{`{"cancel": 1, "id": 7, "keys": {}}`, "7: " + alone},
		{`{"id": 1, "keys": {}} {"id": 2, "keys": {}}`,
			"null: no request: column 23: invalid character '{' after top-level value"},
		{`{"id": "a` + "\xff" + `", "keys": {}}`, "null: no request: column 10: byte 0xff; must be text in UTF-8"},
		{`{"id": "a", "keys": {"x": "` + "\xff" + `"}}`,
			`"a": no request: column 28: byte 0xff; must be text in UTF-8`},
		{`{"id": "` + strings.Repeat("é", 101) + `", "keys": {}}`,
			"null: no request: id: must be " + anID},
		{`{"id": true, "keys": {}}`, "null: no request: id: must be " + anID},
		{`{"id": 8, "keys": {}, "foo": 1}`, "8: no request: foo" + fields},
		{`{"id": 8, "keys": {}, "\u001b[1m": 1}`, `8: no request: \x1b[1m` + fields},
		{`{"ID": 8, "keys": {}}`, "null: no request: ID" + fields},
		{`{"id": 8, "keys": {}, "hash": 1}`, "8: no request: hash: must be true or false"},
		{`{"id": 8, "keys": {}, "progress": null}`, "8: no request: progress: must be true or false"},
		{`{"id": 8}`, "8: no request: keys: must be an object"},
		{`{"id": 8, "keys": [1]}`, "8: no request: keys: must be an object"},
		{`{"id": 8, "keys": {}, "keys": {}}`, `8: no request: column 29: the key "keys" is given twice`},
		{`{"id": 8, "keys": {"a": 1e-999}}`, "8: no request: column 31: 1e-999: must be a number that a float64 " +
			"holds"},
		{`{"id": 8, "keys": {"grid.nx": 9, "grid": {"NX": 9}}}`, "8: grid.nx: given twice"},
		{`[1]`, "null: no request: must be an object with keys"},
		{`null`, "null: no request: must be an object with keys"},
		{`{`, "null: no request: column 1: unexpected end of JSON input"},
		{`{"id": 8, "keys": ` + strings.Repeat(`{"`+long[:90]+`":`, 9_000) + "1" + strings.Repeat("}", 9_001),
			"8: no request: column 866: more than 10 objects within one another"},
		{`{"id": 8, "keys": {"` + long + `": 1}}`, "8: unknown key " + long[:200] + "… (request): " + sections},
		{`{"id": 8, "keys": {` + strings.Join(many, ",") + `}}`, "8: " + first},
		{`{"id": 8, "keys": {"zzzz0": 1, "zzzz1": 1, "zzzz2": 1, "zzzz3": 1}}`, "8: " + strings.Join(unknown, "\n")},
		{`{"id": 8, "keys": {"grid.nx": "` + long + `"}}`, `8: grid.nx "` + long[:119] + " … " + long[:39] +
			`" (1000002 characters) (request): must be an integer, 3 to 2147483647`},
	} {
		c.ask(l.line)
		if got := c.answer(); got != l.want {
			t.Errorf("%.60q:\ngot  %s\nwant %s", l.line, got, l.want)
		}
	}
}

// Two requests without an end cannot have one id, however it is written: a cancel reaches the only one.
func TestServeIDsAreFreeAfterTheEnd(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	c := o.dial()
	for _, id := range []string{"1", `"a"`} {
		c.ask(fmt.Sprintf(`{"id": %s, "keys": {}}`, id))
		<-o.given
		c.ask(fmt.Sprintf(`{"id": %s, "keys": {}}`, strings.Replace(id, "a", `\u0061`, 1)),
			fmt.Sprintf(`{"cancel": %s}`, id))
		for _, want := range []string{id + ": the request was cancelled",
			"null: no request: id " + id + ": the request with this id has no end yet"} {
			if got := c.answer(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
	c.ask(`{"cancel": 1}`, `{"id": 1, "keys": {}}`)
	<-o.given
	o.finish <- study.Result{Failed: "done"}
	if got := c.answer(); got != "1: done" {
		t.Errorf("%s: a cancel of a request that has ended reaches the next one", got)
	}
}

// A client that goes away cancels its requests, although it has asked for more than there is room for. The others have
// their turns meanwhile.
func TestServeClientLeavesWithAFullQueue(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	many, other := o.dial(), o.dial()
	var lines []string
	for id := range maxOpen + 6 {
		lines = append(lines, fmt.Sprintf(`{"id": %d, "keys": {}}`, id))
	}
	many.ask(lines...)
	first := <-o.given
	other.ask(`{"id": "a", "keys": {}}`, `{"id": "b", "keys": {}}`)
	o.await(func() bool { return len(o.turn) == 2 && len(o.turn[1].waiting) == 2 })
	o.finish <- study.Result{Failed: "done"}
	if got := many.answer(); got != "0: done" {
		t.Error(got)
	}
	for _, want := range []string{"1", `"a"`} {
		if r := o.asked((<-o.given).ID); string(r.id) != want {
			t.Errorf("request %s, want %s", r.id, want)
		}
		o.finish <- study.Result{Failed: "done"}
	}
	if got := other.answer(); got != `"a": done` {
		t.Error(got)
	}
	<-o.given // of the client that goes away
	if err := many.Close(); err != nil {
		t.Fatal(err)
	}
	if r := o.asked((<-o.given).ID); string(r.id) != `"b"` {
		t.Errorf("request %s of a client that has gone", r.id)
	}
	o.finish <- study.Result{Failed: "done"}
	if got := other.answer(); got != `"b": done` {
		t.Error(got)
	}
	if context.Cause(first.Wanted) == nil {
		t.Error("a job that has ended is still wanted")
	}
}

// A client may end its requests, and has all answers before its connection ends.
func TestServeEndOfRequests(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	c := o.dial()
	c.ask(`{"id": 1, "keys": {}}`, `{"id": 2, "keys": {"a": 1}}`)
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-o.given
	o.finish <- study.Result{Failed: "done"}
	if got := c.answer(); got != "1: done" {
		t.Error(got)
	}
	if got := c.answer(); !strings.HasPrefix(got, "2: unknown key a (request): ") {
		t.Error(got)
	}
	c.ends()
}

// A client that goes away before its request is taken has not all answers.
func TestServeClientLeavesAtOnce(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	c := &client{serving: newServing(nil, 1), ctx: ctx} // without room
	for requests, want := range map[string]bool{`{"id": 1, "keys": {}}`: false, "\n \n": true, `{"cancel": 1}`: true} {
		if all := c.read(strings.NewReader(requests)); all != want {
			t.Errorf("%q: all taken: %v, want %v", requests, all, want)
		}
	}
}

// A client that does not read its answers waits with its requests once there is no room for more. It blocks no others.
func TestServeSlowReader(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	unread, answers := io.Pipe()
	requests, in := io.Pipe()
	gone := make(chan struct{})
	o.all.Go(func() {
		if err := o.attend(t.Context(), requests, answers, func() { <-gone }); !errors.Is(err, errGone) &&
			!errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the end of a client that has gone: %v", err)
		}
	})
	asked := make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			if _, err := fmt.Fprintf(in, `{"id": %d, "keys": {"a": 1}}`+"\n", n); err != nil {
				break
			}
		}
		asked <- n
	}()
	o.await(func() bool { return o.number == maxOpen })
	other := o.dial()
	other.ask(`{"id": 2, "keys": {}}`)
	<-o.given
	o.finish <- study.Result{Failed: "done"}
	if got := other.answer(); got != "2: done" {
		t.Error(got)
	}
	o.await(func() bool { return o.number == maxOpen+1 && len(o.turn) == 0 })
	close(gone)
	if err := errors.Join(unread.Close(), requests.Close()); err != nil {
		t.Fatal(err)
	}
	if n := <-asked; n < maxOpen || n > 2*maxOpen {
		t.Errorf("%d requests were read of a client that reads no answer", n)
	}
}

// Where nobody reads for a while, the connection ends; time in which this process is stopped does not count.
func TestServeWriteDeadline(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	near, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: o.path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	w := patient{near, nil, 10 * time.Millisecond}
	for err == nil {
		_, err = w.Write(make([]byte, 1<<16))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v, want an end of the time", err)
	}
}

// One client too many is told so.
func TestServeClientsAreBounded(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	for range maxClients {
		c := o.dial()
		c.ask("x")
		c.answer() // it is taken
	}
	c := o.dial()
	if got, want := c.answer(), "null: 64 clients are connected, and no more are taken"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.ends()
}

// A socket has one server, which holds a lock: a connection says nothing where the server does not accept it. What a
// server has left is replaced, but no other file.
func TestServeListens(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	_, err := listenAt(o.path)
	if want := fmt.Sprintf(`--socket %q: in use by run serve, process %d on `, o.path, os.Getpid()); err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("a second server: %v, want %s", err, want)
	}
	dir := filepath.Dir(o.path)
	left := filepath.Join(dir, "left")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := listenAt(left)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(left); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v; want a socket of mode 0600", info.Mode(), err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o750); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(dir, strings.Repeat("x", 110))
	for path, want := range map[string]string{
		file: "the file exists, and is no socket",
		deep: fmt.Sprintf("%d bytes; at most 107 are allowed", len(deep)),
		filepath.Join(open, "s"): fmt.Sprintf("its directory has the mode 0750 and the owner %d; it must be yours, "+
			"with the mode 0700", os.Geteuid()),
		filepath.Join(dir, "no", "s"): "its directory: no such file or directory",
	} {
		if _, err := listenAt(path); err == nil || err.Error() != fmt.Sprintf("--socket %q: %s", path, want) {
			t.Errorf("%v, want --socket %q: %s", err, path, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 { // the socket, its lock, and the file
		t.Errorf("left: %v, %v", entries, err)
	}
}
