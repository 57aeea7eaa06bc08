package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	given  chan study.Job // that the ranks have
	finish chan study.Result
}

// openOffice starts the ranks. A job that has no fault is given, and has the next result of finish, or that of a
// cancelled one.
func openOffice(t *testing.T) *office {
	t.Helper()
	base, err := configs.LoadBase(configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &office{serving: newServing(context.Background(), base, 1), t: t, given: make(chan study.Job),
		finish: make(chan study.Result)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.work(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
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

// caller is the program that asks.
type caller struct {
	t     *testing.T
	in    *io.PipeWriter
	lines *bufio.Reader
	leave func() // has it go away
}

func (o *office) call() *caller {
	requests, in := io.Pipe()
	unread, answers := io.Pipe()
	gone := make(chan struct{})
	leave := sync.OnceFunc(func() {
		close(gone)
		_ = errors.Join(in.Close(), unread.Close()) // pipes close without an error
	})
	o.client.Go(func() {
		_ = o.attend(requests, answers, func() { <-gone }) // fails once it has gone
		_ = answers.Close()
	})
	o.t.Cleanup(func() {
		leave()
		o.client.Wait()
	})
	return &caller{o.t, in, bufio.NewReader(unread), leave}
}

func (c *caller) ask(lines ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, strings.Join(lines, "\n")+"\n"); err != nil {
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

// ends checks that the answers end.
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
	c := openOffice(t).call()
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
	c := o.call()
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

// A client that goes away cancels its requests, although it has asked for more than there is room for.
func TestServeClientLeavesWithAFullQueue(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	c := o.call()
	asked := make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			if _, err := fmt.Fprintf(c.in, `{"id": %d, "keys": {}}`+"\n", n); err != nil {
				break
			}
		}
		asked <- n
	}()
	first := <-o.given
	o.finish <- study.Result{Failed: "done"}
	if got := c.answer(); got != "0: done" {
		t.Error(got)
	}
	second := <-o.given
	o.await(func() bool { return len(o.waiting) == maxOpen-1 })
	c.leave()
	<-second.Wanted.Done()
	o.await(func() bool { return len(o.waiting) == 0 && len(o.open) == 0 })
	if n := <-asked; n < maxOpen {
		t.Errorf("%d requests were read", n)
	}
	if context.Cause(first.Wanted) == nil {
		t.Error("a job that has ended is still wanted")
	}
}

// A client may end its requests, and has all answers before its connection ends.
func TestServeEndOfRequests(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	c := o.call()
	c.ask(`{"id": 1, "keys": {}}`, `{"id": 2, "keys": {"a": 1}}`)
	if err := c.in.Close(); err != nil {
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
	c := newServing(ctx, nil, 0) // without room
	for requests, want := range map[string]bool{`{"id": 1, "keys": {}}`: false, "\n \n": true, `{"cancel": 1}`: true} {
		if all := c.read(strings.NewReader(requests)); all != want {
			t.Errorf("%q: all taken: %v, want %v", requests, all, want)
		}
	}
}

// A client that does not read its answers waits with its requests once there is no room for more.
func TestServeSlowReader(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	c := o.call()
	asked := make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			if _, err := fmt.Fprintf(c.in, `{"id": %d, "keys": {"a": 1}}`+"\n", n); err != nil {
				break
			}
		}
		asked <- n
	}()
	o.await(func() bool { return o.number == maxOpen && len(o.open) == 0 })
	c.leave()
	if n := <-asked; n < maxOpen || n > 2*maxOpen {
		t.Errorf("%d requests were read of a client that reads no answer", n)
	}
}
