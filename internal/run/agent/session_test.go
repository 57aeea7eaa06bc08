package agent

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/base/version"
	"jacobi/internal/net/roster/rostertest"
)

// A launcher finds an agent with a secret only if it has the same secret.
func TestSecretsOfAgents(t *testing.T) {
	s := rostertest.Start(t, 0)
	startAgent(t, join(t, s, secret), `echo "$JACOBI_NATS_SECRET_FILE"`)
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
	startAgent(t, join(t, s, ""), `echo "$JACOBI_NATS_SECRET_FILE"`)
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
	r, err := start(t, h, 1, "JACOBI_NATS_SECRET_FILE=inline:of the run")
	if err != nil {
		t.Fatal(err)
	}
	if line := <-r.lines; line != "0 stdout inline:of the run" {
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
