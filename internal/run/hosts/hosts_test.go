package hosts

import (
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap/zaptest"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/natsserver"
	"jacobi/internal/run/launch"
)

func placed(t *testing.T, w Where, ranks int) (Places, error) {
	t.Helper()
	cfg := configs.Default()
	cfg.Run.Ranks = ranks
	return w.Place(t.Context(), cfg, func(text string) { t.Error(text) })
}

// The names and addresses of this machine are found among the hosts, and hosts that were lost get no ranks.
func TestPlace(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("a.invalid slots=1\nlocalhost slots=3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		w    Where
		want string // host of each rank
		here []string
	}{
		{Where{MapBy: "slot"}, strings.Repeat(own+" ", 3), []string{own}},
		{Where{MapBy: "slot", Hosts: []string{"a.invalid:2", "127.0.0.1:2"}}, "a.invalid a.invalid 127.0.0.1 ",
			[]string{"127.0.0.1"}},
		{Where{MapBy: "node", Hosts: []string{"a.invalid:2,b.invalid:2"}}, "a.invalid b.invalid a.invalid ", nil},
		{Where{MapBy: "slot", Hostfile: file, Lost: []string{"a.invalid"}}, strings.Repeat("localhost ", 3),
			[]string{"localhost"}},
	} {
		p, err := placed(t, c.w, 3)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range p.Placements {
			got += r.Host + " "
		}
		here := 0
		for _, r := range p.Placements {
			if slices.Contains(c.here, r.Host) {
				here++
			}
		}
		if got != c.want || len(p.Here) != len(c.here) || p.RanksHere() != here {
			t.Errorf("%+v: ranks on %s, %d of them on %v; want %s, %d on %v", c.w, got, p.RanksHere(), p.Here, c.want,
				here, c.here)
		}
	}
}

func TestPlaceRefuses(t *testing.T) {
	for _, c := range []struct {
		w    Where
		want string
	}{
		{Where{MapBy: "core"}, `--map-by "core": allowed are slot and node`},
		{Where{MapBy: "slot", Agents: true, Hosts: []string{"a"}},
			"--nodes and --host or --hostfile: only one of them is allowed"},
		{Where{MapBy: "slot", Agents: true}, "--wait 0s: must be a positive duration, as in 30s"},
		{Where{MapBy: "slot", Agents: true, Wait: 1}, `nats.url "": must name the server where the agents are`},
		{Where{MapBy: "slot", Hosts: []string{"a:2,b:2"}, Lost: []string{"b"}},
			"-np 3 ranks need 3 slots, and there are 2: a 2"},
	} {
		if _, err := placed(t, c.w, 3); err == nil || err.Error() != c.want {
			t.Errorf("%+v: error %v, want %s", c.w, err, c.want)
		}
	}
}

// Ranks far beyond the cores of this machine are refused unless --host gives them slots.
func TestCrowded(t *testing.T) {
	const want = "-np: 2,048 ranks would share 2 cores of this machine, and at most 64 start there unless --host " +
		"localhost:2048 asks for them"
	if err := crowded(2048, 2); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	for ranks, cores := range map[int]int{64: 1, 8: 2, 256: 16} {
		if err := crowded(ranks, cores); err != nil {
			t.Error(err)
		}
	}
	const many = 1 << 14 // more than the rows of the mesh have place for
	if _, err := placed(t, Where{MapBy: "slot", Hosts: []string{"localhost:99999"}}, many); err != nil {
		t.Error(err)
	}
	if _, err := placed(t, Where{MapBy: "slot"}, many); runtime.NumCPU() < 100 && err == nil {
		t.Error("no error")
	}
}

// Two names of one machine are refused; a machine that is not known is none of the others.
func TestOneMachine(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	if err := oneMachine(names, []string{"1", "", "", "2"}); err != nil {
		t.Error(err)
	}
	err := oneMachine(names, []string{"1", "2", "", "2"})
	if want := "hosts b and d are one machine: give it one name with the slots of both"; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Ranks reach this machine at the addresses that the user advertises, else where ssh came from, else, behind a jump
// host, at any address of it.
func TestAddressesFor(t *testing.T) {
	own := []string{"10.0.0.1", "192.0.2.7"}
	for _, c := range []struct {
		client     string
		advertised []string
		want       []string
	}{
		{"10.0.0.1", []string{"gate"}, []string{"gate"}},
		{"10.0.0.1", nil, []string{"10.0.0.1"}},
		{"203.0.113.9", nil, own},
		{"", nil, own},
	} {
		if got := addressesFor(c.client, own, c.advertised); !slices.Equal(got, c.want) {
			t.Errorf("%q, advertised %v: %v, want %v", c.client, c.advertised, got, c.want)
		}
	}
}

// Each host that cannot be reached is named, and those that were reached are closed.
func TestReachNamesAllHosts(t *testing.T) {
	p := Places{Placements: []launch.Placement{{Rank: 0, Host: "a"}, {Rank: 1, Host: "here"}, {Rank: 2, Host: "b"}},
		Here: map[string]bool{"here": true}}
	ssh := launch.SSH{Command: []string{"sh", "-c", "echo no route >&2; exit 255"}, Program: "launcher"}
	_, err := Reach(t.Context(), p, Means{SSH: ssh, Say: func(text string) { t.Error(text) }})
	if want := "host a: no route\nhost b: no route"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	p.Placements = p.Placements[1:2]
	r, err := Reach(t.Context(), p, Means{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.ByName["here"].(*launch.Local); !ok || len(r.client) != 0 {
		t.Errorf("reached %v, over ssh %v", r.ByName, r.client)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A run seals its messages at a server of the user.
func TestConnectToAServer(t *testing.T) {
	log := zaptest.NewLogger(t)
	srv, err := natsserver.Start(natsserver.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	n := configs.NATS{URL: srv.NATS().URL}
	r := &Reached{ByName: map[string]launch.Host{"here": nil}}
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
