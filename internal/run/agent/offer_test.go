package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/base/version"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/run/launch"
)

// Agents of another version are left out. The error names them.
func TestOtherVersion(t *testing.T) {
	s := rostertest.Start(t, 0)
	old, err := json.Marshal(Offer{ID: "x", Host: "old-node", Version: "v0.0.1", Slots: 8, Free: 8})
	if err != nil {
		t.Fatal(err)
	}
	other := s.Dial()
	if _, err := other.Subscribe(offerSubject, func(m *nats.Msg) { _ = m.Respond(old) }); err != nil {
		t.Fatal(err)
	}
	if err := other.Flush(); err != nil {
		t.Fatal(err)
	}
	_, err = Find(t.Context(), join(t, s, ""), 2, 2*time.Second, quiet)
	want := fmt.Sprintf("2 ranks need 2 slots, and after 2s there are 0, 2 too few: all agents at %s "+
		"were asked; old-node is left out: its version is v0.0.1, the launcher's %s", s.URL(), version.String())
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant %s", err, want)
	}
}

// An offer of more slots than runs have ranks is none: sums of slots stay small.
func TestOffersOfTooManySlots(t *testing.T) {
	for slots, want := range map[int]bool{1: true, launch.MaxSlots: true, launch.MaxSlots + 1: false, 1 << 62: false} {
		data, err := json.Marshal(Offer{ID: "x", Host: "a", Slots: slots, Free: slots})
		if err != nil {
			t.Fatal(err)
		}
		if o, ok := readOffer(data); ok != want {
			t.Errorf("%+v: accepted %v, want %v", o, ok, want)
		}
	}
}

// Names tell agents with the same host name apart by their ids, whatever the length of the ids' common prefix.
func TestNamesOfOneHost(t *testing.T) {
	slots := Slots([]Offer{
		{ID: "00112233445566", Host: "a", PID: 1, Free: 2},
		{ID: "11223344556677", Host: "b", PID: 1, Free: 3},
		{ID: "11223344556688", Host: "b", PID: 1, Free: 4},
		{ID: "22", Host: "b", PID: 1, Free: 5},
	})
	if want := "[{a 2} {b/1122334455667 3} {b/1122334455668 4} {b/22 5}]"; fmt.Sprint(slots) != want {
		t.Errorf("slots %v, want %s", slots, want)
	}
}

// Two agents with the same host name and process id, as in containers, each get their share of the ranks.
func TestTwoAgentsThatLookAlike(t *testing.T) {
	s := rostertest.Start(t, 0)
	startAgent(t, join(t, s, ""), "exit 0")
	startAgent(t, join(t, s, ""), "exit 0")
	conn := join(t, s, "")
	offers, err := Find(t.Context(), conn, 6, long, quiet)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := Hosts(conn, offers, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range hosts {
		t.Cleanup(func() { _ = h.Close() })
		r, err := start(t, h, 3)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for range 3 {
			if e := <-r.exits; e.Code != 0 || e.Lost != "" {
				t.Errorf("%s: exit %+v", name, e)
			}
		}
	}
	if len(hosts) != 2 {
		t.Errorf("%d hosts, want 2", len(hosts))
	}
}

// inquiry is a call of Find in progress.
type inquiry struct {
	says  chan string
	found chan error // receives the error of Find
}

func find(ctx context.Context, conn *wire.Conn, ranks int) inquiry {
	q := inquiry{says: make(chan string, 100), found: make(chan error, 1)}
	go func() {
		_, err := Find(ctx, conn, ranks, long, func(text string) { q.says <- text })
		q.found <- err
	}()
	return q
}

// await waits until Find says want. On a busy machine Find may say first that none answered.
func (q inquiry) await(t *testing.T, want string) {
	t.Helper()
	late := time.After(long)
	for {
		select {
		case got := <-q.says:
			if got == want {
				return
			}
			if got != "none answered" {
				t.Errorf("said %q, want %q", got, want)
			}
		case err := <-q.found:
			t.Fatalf("Find returned error %v before it said %q", err, want)
		case <-late:
			t.Fatalf("%q was not said within %v", want, long)
		}
	}
}

// The offer of an agent that does not answer any more is dropped.
func TestFindForgetsAnAgentThatIsGone(t *testing.T) {
	s := rostertest.Start(t, 0)
	end := startAgent(t, join(t, s, ""), "exit 0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q := find(ctx, join(t, s, ""), 4)
	q.await(t, "node has 3 of 3 slots free")
	_ = end(errors.New("over"))
	q.await(t, "none answered")
	cancel()
	if err := <-q.found; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A launcher finds an agent with a secret only if it has the same secret.
func TestSecretsOfAgents(t *testing.T) {
	s := rostertest.Start(t, 0)
	startAgent(t, join(t, s, secret), `echo "$JACOBI_JOB"`)
	for _, other := range []string{"", "another secret, of others"} {
		_, err := Find(t.Context(), join(t, s, other), 1, 300*time.Millisecond, quiet)
		want := "1 ranks need 1 slots, and after 300ms there are 0, 1 too few: all agents at " + s.URL() +
			" were asked; none answered"
		if err == nil || err.Error() != want {
			t.Errorf("error %v\nwant %s", err, want)
		}
	}
	// A false agent offers many slots to all launchers.
	stranger := s.Dial()
	false100, err := json.Marshal(Offer{ID: "x", Host: "false", Version: version.String(), Slots: 100, Free: 100})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Subscribe(offerSubject, func(m *nats.Msg) { _ = m.Respond(false100) }); err != nil {
		t.Fatal(err)
	}
	_, err = Find(t.Context(), join(t, s, secret), 4, 3*time.Second, quiet)
	if err == nil || !strings.Contains(err.Error(), "there are 3, 1 too few: ") ||
		!strings.Contains(err.Error(), " answers were not sealed with the secret of nats.secret_file") {
		t.Errorf("error %v", err)
	}
}

// A stranger who records a launch can neither read nor replay it.
func TestRecordedLaunchCannotBeReplayed(t *testing.T) {
	s := rostertest.Start(t, 0)
	startAgent(t, join(t, s, ""), `echo "$JACOBI_JOB"`)
	stranger := s.Dial()
	tape, err := stranger.SubscribeSync(prefix + ".>")
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Flush(); err != nil {
		t.Fatal(err)
	}
	conn := join(t, s, "")
	h := host(t, conn)
	r, err := start(t, h, 1)
	if err != nil {
		t.Fatal(err)
	}
	if line := <-r.lines; !strings.Contains(line, "inline:of the run") {
		t.Errorf("the rank got %q", line)
	}
	<-r.exits
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := stranger.Flush(); err != nil {
		t.Fatal(err)
	}
	var recorded []*nats.Msg
	for {
		m, err := tape.NextMsg(time.Millisecond)
		if err != nil {
			break
		}
		if bytes.Contains(m.Data, []byte("of the run")) || bytes.Contains(m.Data, []byte("SECRET")) {
			t.Errorf("a stranger reads %q", m.Data)
		}
		recorded = append(recorded, m)
	}
	if len(recorded) < 4 {
		t.Fatalf("%d messages were recorded", len(recorded))
	}
	again, err := stranger.SubscribeSync(prefix + ".*.*.news")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range recorded {
		if strings.HasSuffix(m.Subject, ".orders") {
			if err := stranger.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The agent handles messages in order: once it has answered this launch, it has handled the replayed messages.
	if _, err := start(t, host(t, conn), 4); err == nil {
		t.Fatal("4 ranks on 3 slots")
	}
	if err := stranger.Flush(); err != nil {
		t.Fatal(err)
	}
	id := strings.Split(recorded[len(recorded)-1].Subject, ".")[3]
	for {
		m, err := again.NextMsg(time.Millisecond)
		if err != nil {
			break
		}
		if strings.Contains(m.Subject, id) && len(m.Data) > 150 { // longer than a goodbye
			t.Errorf("the agent answers %d bytes to a replayed message", len(m.Data))
		}
	}
}
