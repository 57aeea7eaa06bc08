package hosts

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap/zaptest"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/natsserver"
	"jacobi/internal/run/launch"
)

func TestFailedConnectionsDoNotRevealSecrets(t *testing.T) {
	log := zaptest.NewLogger(t)
	srv, err := natsserver.Start(natsserver.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	n := configs.NATS{URL: "nats://jacobi:hunter2@" + srv.Addr()}
	r := &Reached{ByName: map[string]launch.Host{"here": nil}}
	_, err = r.Connect(t.Context(), n, "r1", log)
	if want := "nats.url: connect to the NATS server at nats://" + srv.Addr() + ": nats: Authorization Violation: " +
		"the server does not know this user, or wants another password or key " +
		"(nats.user and nats.password_file, nats.creds, nats.nkey, or nats.url)"; err == nil || err.Error() != want {
		t.Errorf("error %v\nwant %s", err, want)
	}
	n.URL = srv.NATS().URL
	link, err := r.Connect(t.Context(), n, "r1", log)
	if err != nil {
		t.Fatal(err)
	}
	if got := link.Access["here"]; got.URL != n.URL || got.SecretFile == "" {
		t.Errorf("the ranks get %v", got)
	}
	if link.Conn.Status() != pubsub.Connected || !link.Conn.Sealed() {
		t.Errorf("status %v, sealed: %v", link.Conn.Status(), link.Conn.Sealed())
	}
	link.Close()
	srv.Close()
}

func TestConnectStartsAServer(t *testing.T) {
	own, err := natsserver.Addresses()
	if err != nil || len(own) == 0 {
		t.Fatalf("addresses %v, error %v", own, err)
	}
	r := &Reached{ByName: map[string]launch.Host{"here": nil}}
	link, err := r.Connect(t.Context(), configs.NATS{}, "r1", zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	local := link.Access["here"].URL
	if link.Conn.MaxPayload() != natsserver.MaxPayload || !strings.HasPrefix(local, "nats://jacobi:") {
		t.Errorf("max payload %d, URL for the ranks %q", link.Conn.MaxPayload(), link.Access["here"].URL)
	}
	link.Close()
	if link.Conn.Status() != pubsub.Closed {
		t.Error("the connection is still open")
	}

	r.ByName["far"], r.ByName["behind"] = nil, nil
	r.client = map[string]string{"far": own[0], "behind": "192.0.2.1"}
	link, err = r.Connect(t.Context(), configs.NATS{}, "r1", zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	at := func(name string) (addresses []string) {
		for s := range strings.SplitSeq(link.Access[name].URL, ",") {
			u, err := url.Parse(s)
			if err != nil || u.Scheme != "tls" {
				t.Fatalf("%s: URL %v, error %v", name, u, err)
			}
			addresses = append(addresses, u.Hostname())
		}
		return addresses
	}
	if got := [][]string{at("here"), at("far"), at("behind")}; !reflect.DeepEqual(got,
		[][]string{{"127.0.0.1"}, own[:1], own}) {
		t.Errorf("addresses %v", got)
	}

	link, err = r.Connect(t.Context(), configs.NATS{Advertise: "gate, 10.1.2.3"}, "r1", zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	if got := at("far"); !slices.Equal(got, []string{"gate", "10.1.2.3"}) {
		t.Errorf("addresses %v, want those that are advertised", got)
	}
}
