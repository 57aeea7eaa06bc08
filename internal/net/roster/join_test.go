package roster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
)

func member(rank, size int) Member {
	return Member{
		Identity: Identity{RunID: "test", Rank: rank, Size: size, LocalSize: 1}, Version: "v1", ConfigHash: "c0ffee",
		Functions: "51e", Platform: "linux/amd64",
		Host: fmt.Sprintf("host%d", rank), PID: 1000 + rank,
	}
}

// dialer returns a connection for a rank.
type dialer func(i int) pubsub.Conn

func plain(s *rostertest.Server) dialer { return func(int) pubsub.Conn { return wire.Over(s.Dial()) } }

func faulty(s *rostertest.Server, seed uint64, p float64) dialer {
	return func(i int) pubsub.Conn {
		return rostertest.NewFaulty(wire.Over(s.Dial()), seed*1000+uint64(i), rostertest.Lossy(p))
	}
}

// joinAll joins all members at once and returns the result of each.
func joinAll(t *testing.T, dial dialer, timeout time.Duration, members ...Member) ([]*Comm, []error) {
	t.Helper()
	comms, errs := make([]*Comm, len(members)), make([]error, len(members))
	conns := make([]pubsub.Conn, len(members))
	for i := range members { // before the first timeout begins
		conns[i] = dial(i)
	}
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() { comms[i], errs[i] = Join(t.Context(), conns[i], m, timeout) })
	}
	wg.Wait()
	for _, comm := range comms {
		if comm != nil {
			t.Cleanup(comm.Close)
		}
	}
	return comms, errs
}

func all(size int) []Member {
	var m []Member
	for r := range size {
		m = append(m, member(r, size))
	}
	return m
}

// joined returns the comms of a run of size ranks, by rank.
func joined(t *testing.T, dial dialer, size int) []*Comm {
	t.Helper()
	comms, errs := joinAll(t, dial, 10*time.Second, all(size)...)
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
		if got := comms[r].Members(); len(got) != size || got[size-1].Host != fmt.Sprintf("host%d", size-1) {
			t.Fatalf("rank %d got the roster %v", r, got)
		}
	}
	return comms
}

func TestJoinAlone(t *testing.T) {
	comm, err := Join(t.Context(), nil, member(0, 1), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer comm.Close()
	if _, err := Join(t.Context(), nil, member(0, 2), time.Second); err == nil ||
		!strings.Contains(err.Error(), "needs a NATS server") {
		t.Errorf("two ranks without a server: %v", err)
	}
}

// TestJoinRefuses checks that every rank that joins gets the same error, in time.
func TestJoinRefuses(t *testing.T) {
	with := func(m Member, f func(*Member)) Member { f(&m); return m }
	double := with(member(2, 4), func(m *Member) { m.Host, m.PID = "elsewhere", 77 })
	double0 := with(member(0, 4), func(m *Member) { m.Host, m.PID = "elsewhere", 77 })
	without := func(gone ...int) []Member {
		var left []Member
		for _, m := range all(8) {
			keep := true
			for _, g := range gone {
				keep = keep && m.Rank != g
			}
			if keep {
				left = append(left, m)
			}
		}
		return left
	}
	for name, c := range map[string]struct {
		members []Member
		want    []string
	}{
		"missing": {without(5, 7), []string{"ranks 5, 7 of 8 did not join within ", "; joined: 0-4, 6"}},
		"doubled": {append(all(4)[:3], double),
			[]string{"rank 2 joined twice: pid ", "1002 on host host2", "pid 77 on host elsewhere"}},
		"doubled rank 0": {[]Member{member(0, 4), double0, member(1, 4)},
			[]string{"rank 0 joined twice: pid ", "1000 on host host0", "pid 77 on host elsewhere"}},
		"another size": {append(all(4)[:3], member(3, 5)),
			[]string{"rank 3 (host host3, pid 1003) belongs to a run of 5 ranks, not of 4"}},
		"another version": {append(all(4)[:3], with(member(3, 4), func(m *Member) { m.Version = "v2" })),
			[]string{`the ranks differ in version: "v1" on ranks 0-2, "v2" on rank 3`}},
		"another config": {append(all(4)[:2], with(member(2, 4), func(m *Member) { m.ConfigHash = "f00" }),
			with(member(3, 4), func(m *Member) { m.ConfigHash = "f00" })),
			[]string{`configuration hash: "c0ffee" on ranks 0, 1, "f00" on ranks 2, 3`}},
		"missing and more": {
			[]Member{member(0, 4), member(1, 4), with(member(3, 4), func(m *Member) { m.Version = "v2" })},
			[]string{`the ranks differ in version: "v1" on ranks 0, 1, "v2" on rank 3; ` +
				`rank 2 of 4 did not join within `},
		},

		"other functions": {
			append(all(4)[:3], with(member(3, 4), func(m *Member) { m.Functions, m.Platform = "f00", "linux/arm64" })),
			[]string{"rank 0 (host host0, pid 1000) on linux/amd64 (hash 51e) and rank 3 (host host3, pid 1003) on " +
				"linux/arm64 (hash f00) have different values of the elementary functions: " +
				"together they would compute other bits than each alone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkRefused(t, c.members, c.want, name != "doubled rank 0")
		})
	}
}

// checkRefused joins members, and checks that each of them gets an error with all of wants, and the same one if same is
// set.
func checkRefused(t *testing.T, members []Member, wants []string, same bool) {
	t.Helper()
	s := rostertest.Start(t, 0)
	start := time.Now()
	_, errs := joinAll(t, plain(s), 2*time.Second, members...)
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	text := func(err error) string {
		if err == nil {
			return ""
		}
		_, after, _ := strings.Cut(err.Error(), "join run test: ")
		return after
	}
	for i, err := range errs {
		if err == nil {
			t.Errorf("%v joined", members[i])
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: error %q, want %q in it", members[i], err, want)
			}
		}
		if same && text(err) != text(errs[0]) {
			t.Errorf("%v: error %q, rank 0 has %q", members[i], text(err), text(errs[0]))
		}
	}
}

func TestJoinWithoutRank0(t *testing.T) {
	s := rostertest.Start(t, 0)
	_, errs := joinAll(t, plain(s), 2*time.Second, all(4)[1:]...)
	for i, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "no answer from rank 0 of 4 within 2s") ||
			!IsConsequence(err) {
			t.Errorf("rank %d: %v", i+1, err)
		}
	}
}

func TestJoinTooLate(t *testing.T) {
	s := rostertest.Start(t, 0)
	joined(t, plain(s), 2)
	late := member(1, 2)
	late.PID = 9
	_, err := Join(t.Context(), wire.Over(s.Dial()), late, 5*time.Second)
	if want := "rank 1 joined twice: pid 1001 on host host1 and pid 9 on host host1, which came after the " +
		"start of the run"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// without is a connection that loses every message for which lose returns true.
type without struct {
	pubsub.Conn
	lose func(subject string, data []byte) bool
}

func (w without) Publish(subject string, data []byte) error {
	if w.lose(subject, data) {
		return nil
	}
	return w.Conn.Publish(subject, data)
}

// A rank that gets answers and never the roster does not wait for ever: rank 0 refuses it once the timeout is over.
func TestJoinWithoutTheRoster(t *testing.T) {
	s := rostertest.Start(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	lossy := without{wire.Over(s.Dial()), func(_ string, data []byte) bool {
		var v verdict
		return json.Unmarshal(data, &v) == nil && v.List != nil
	}}
	begun := make(chan error, 1)
	go func() {
		comm, err := Join(ctx, lossy, member(0, 2), time.Second)
		if err == nil {
			t.Cleanup(comm.Close)
		}
		begun <- err
	}()
	_, err := Join(ctx, wire.Over(s.Dial()), member(1, 2), time.Second)
	if want := "the list of ranks did not reach rank 1 (host host1, pid 1001) within 1s"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if err := <-begun; err != nil {
		t.Errorf("rank 0: %v", err)
	}
}

// In a large run a roster may take long, and a rank that asks for it meanwhile is told to wait: never beyond the time
// that rank 0 has announced.
func TestJoinWaitsForTheRosterWithinTheTimeout(t *testing.T) {
	s := rostertest.Start(t, 0)
	said := make(chan verdict, 1)
	conn := without{wire.Over(s.Dial()), func(_ string, data []byte) bool {
		var v verdict
		if err := json.Unmarshal(data, &v); err != nil {
			t.Errorf("rank 0 said %q", data)
		}
		said <- v
		return true
	}}
	for _, c := range []struct{ timeout, least time.Duration }{{time.Hour, time.Hour - time.Minute}, {0, 0}} {
		self, other := member(0, 10000), member(7, 10000)
		col := &collector{
			comm: &Comm{self: self, conn: conn, id: "rank0"}, timeout: c.timeout,
			limit: (*awake.Clock)(nil).Limit(c.timeout), changed: make(chan struct{}, 1),
			processes: map[string]*hello{"rank7": {ID: "rank7", Member: other}},
			final:     &verdict{List: []byte{1}}, sent: time.Now(),
		}
		col.receive(pubsub.Message{Data: []byte(`{"id":"rank7"}`)})
		v := <-said
		if refused := v.Error != ""; v.Left < c.least || v.Left > c.timeout || refused != (c.timeout == 0) {
			t.Errorf("timeout %v: %+v", c.timeout, v)
		}
	}
}

func TestJoinEndsWithContext(t *testing.T) {
	s := rostertest.Start(t, 0)
	cause := errors.New("the user is gone")
	for rank := range 2 {
		ctx, cancel := context.WithCancelCause(t.Context())
		conn := wire.Over(s.Dial())
		done := make(chan error)
		watch, err := s.Dial().SubscribeSync(joinSubject("test"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, err := Join(ctx, conn, member(rank, 2), time.Minute); done <- err }()
		if _, err := watch.NextMsg(10 * time.Second); err != nil {
			t.Fatal(err)
		}
		cancel(cause)
		if err := <-done; !errors.Is(err, cause) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestJoinIgnoresNoise checks that messages that are no hello change nothing.
func TestJoinIgnoresNoise(t *testing.T) {
	s := rostertest.Start(t, 0)
	conn := s.Dial()
	for _, noise := range []string{"", "{}", `{"id":"a.b"}`, `{"id":1}`, "\x00\xff", `[]`, `{"id":">"}`} {
		if err := conn.Publish(joinSubject("test"), []byte(noise)); err != nil {
			t.Fatal(err)
		}
	}
	comms := joined(t, plain(s), 3)
	for _, subject := range []string{joinSubject("test"), abortSubject("test"), postSubject("test", 0),
		postSubject("test", 1)} {
		for _, noise := range []string{"", "{", "\x00\xff", `{"rank":99}`, `{"rank":-7}`} {
			if err := conn.Publish(subject, []byte(noise)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	together(t, comms, func(ctx context.Context, comm *Comm) error { return comm.Barrier(ctx, "after the noise") })
}
