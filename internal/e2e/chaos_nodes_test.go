package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Runs of TestChaos on two nodes listen at chaosListen for rows over TCP. Other runs on the same nodes listen at
// otherPort.
const (
	chaosListen = "10.77.0.0/24:47000-47009"
	chaosPorts  = "47000:47009"
	otherPort   = "47100"
)

// onTwoNodes makes two nodes for this run.
func (s *chaosRun) onTwoNodes() {
	s.Helper()
	s.nodes = newCluster(s.T, 2)
}

// overTCP returns the launcher's arguments for a run on the two nodes whose rows travel over TCP between them, with and
// without TLS. Its halos are shallow, so that it takes long enough to be hit.
func (s *chaosRun) overTCP(more ...string) []string {
	encrypt := []string{"always", "never"}[s.rand.IntN(2)]
	s.fault = "encrypt " + encrypt
	args := s.args([]string{"halo.transport=direct", "halo.depth=1", "halo.direct.listen=" + chaosListen,
		"halo.direct.encrypt=" + encrypt}, s.nodes.ssh("user")...)
	return append(append(args, "--host", fmt.Sprintf("a:%d,b:%d", (s.np+1)/2, s.np/2)), more...)
}

// nodeRanks returns the process ids of the ranks on both nodes.
func (s *chaosRun) nodeRanks() []int {
	return append(s.nodes.processes("a", "jacobi-rank"), s.nodes.processes("b", "jacobi-rank")...)
}

// firewall adds a rule to a table of iptables on node a, where the ranks listen, and returns a function that removes
// it. Where there is no such table, it skips the run visibly.
func (s *chaosRun) firewall(table, chain string, rule ...string) (remove func()) {
	s.Helper()
	change := func(how string) []string {
		return slices.Concat([]string{"ip", "netns", "exec", s.nodes.ns("a"), "iptables", "-w", "-t", table, how,
			chain}, rule)
	}
	add := change("-A")
	if out, err := exec.Command(add[0], add[1:]...).CombinedOutput(); err != nil {
		s.Skipf("NOT RUN: %s: iptables: %v: %s", s.Name(), err, out)
	}
	return func() {
		s.Helper()
		s.nodes.sh(change("-D")...)
	}
}

// links returns the links between the nodes in the report of the run in dir, by rank.
func (s *chaosRun) links(dir string) (links []linkReport) {
	s.Helper()
	r := readReport(s.T, filepath.Join(dir, "out"))
	for _, k := range r.Ranks {
		for _, l := range k.Transports {
			if r.Ranks[l.Neighbour].Host != k.Host {
				links = append(links, l)
			}
		}
	}
	if len(links) == 0 {
		s.Fatal("no link leaves a node")
	}
	return links
}

// lostSockets returns how often the sockets of the run broke. A connection that breaks before it has proved to be the
// link's own counts as refused.
func (s *chaosRun) lostSockets() (lost int) {
	s.Helper()
	for _, l := range s.links(s.dir) {
		if l.Transport != "direct" || l.Direct == nil {
			s.Errorf("link %+v, want one over TCP", l)
			continue
		}
		if lost += l.Direct.Lost; l.Direct.Lost > 0 != (l.Direct.Reason != "") {
			s.Errorf("link %+v, want a reason if the sockets broke", l.Direct)
		}
	}
	return lost
}

// killOnNodes kills a rank of a run that may start again, or may not.
func (s *chaosRun) killOnNodes() string {
	s.onTwoNodes()
	again := s.rand.IntN(2)
	l := s.start(s.overTCP("--max-restarts", fmt.Sprint(3*again))...)
	if pids := s.nodeRanks(); len(pids) > 0 {
		s.hit = syscall.Kill(pids[s.rand.IntN(len(pids))], syscall.SIGKILL) == nil
	}
	killed := time.Now()
	code, output := l.end()
	if took := time.Since(killed); again == 0 && took > 15*time.Second { // else it has sweeps to do again
		s.Errorf("the run ended %v after the kill, want at most 15s", took)
	}
	s.nodes.leavesNothing(5 * time.Second)
	if again == 1 || code == 0 {
		return s.checkAnswer(code, output)
	}
	return s.checkKilled(code, output)
}

// stopOnNodes stops a rank for longer than its neighbour waits before it asks for rows.
func (s *chaosRun) stopOnNodes() string {
	s.onTwoNodes()
	l := s.start(s.overTCP()...)
	if pids := s.nodeRanks(); len(pids) > 0 {
		pid := pids[s.rand.IntN(len(pids))]
		s.hit = syscall.Kill(pid, syscall.SIGSTOP) == nil
		time.Sleep(time.Second) // the fault itself
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	return s.checkAnswer(l.end())
}

// breakSockets breaks the sockets between the nodes by a reset, and again by a firewall that drops what they carry.
func (s *chaosRun) breakSockets() string {
	s.onTwoNodes()
	l := s.start(s.overTCP()...)
	ports := []string{"-p", "tcp", "--dport", chaosPorts, "-j"}
	remove := s.firewall("filter", "INPUT", append(ports, "REJECT", "--reject-with", "tcp-reset")...)
	s.nodes.await("a packet that is rejected, or the end of the run", func() bool {
		return s.rejected() || len(s.nodeRanks()) == 0
	})
	remove()
	remove = s.firewall("filter", "INPUT", append(ports, "DROP")...)
	time.Sleep(time.Second) // the fault itself
	remove()
	code, output := l.end()
	outcome := s.checkAnswer(code, output)
	if strings.Contains(output, notTheLinks) {
		s.Errorf("strangers came\n%s", output)
	}
	lost := s.lostSockets()
	s.fault += fmt.Sprintf(", lost %d times", lost)
	s.hit = lost > 0
	return outcome
}

// rejected reports whether node a's firewall has rejected a packet.
func (s *chaosRun) rejected() bool {
	out, err := exec.Command("ip", "netns", "exec", s.nodes.ns("a"), "iptables", "-w", "-nvxL", "INPUT").Output()
	if err != nil {
		s.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^ *[1-9]\d* .*REJECT`).Match(out)
}

// pullCable takes the link of a node away, with all connections that go through it, and brings it back.
func (s *chaosRun) pullCable() string {
	s.onTwoNodes()
	l := s.start(s.overTCP()...)
	s.hit = len(s.nodeRanks()) > 0
	away := time.Duration(300+s.rand.IntN(1500)) * time.Millisecond
	port := []string{"ip", "-n", s.nodes.ns("net"), "link", "set", "dev", "b"}
	s.nodes.sh(append(port, "down")...)
	time.Sleep(away) // the fault itself
	s.nodes.sh(append(port, "up")...)
	s.fault += fmt.Sprintf(", away for %v", away)
	return s.checkAnswer(l.end())
}

// blockPorts has a firewall keep the nodes apart from the start: the rows go over NATS, and the report says why.
func (s *chaosRun) blockPorts() string {
	s.onTwoNodes()
	target, why := "REJECT", "connect: connection refused"
	if s.rand.IntN(2) == 0 {
		target, why = "DROP", "i/o timeout"
	}
	s.firewall("filter", "INPUT", "-p", "tcp", "--dport", chaosPorts, "-j", target)
	outcome := s.checkAnswer(s.launch(s.overTCP()...).end())
	s.fault += ", " + target
	s.checkFallback(why)
	return outcome
}

// checkFallback checks that the rows between the nodes went over NATS, because a connection failed as the pattern why
// says.
func (s *chaosRun) checkFallback(why string) {
	s.Helper()
	want := regexp.MustCompile(`direct failed: rank \d: .*no connection to 10\.77\.0\.1:470\d\d: .*` + why)
	for _, l := range s.links(s.dir) {
		if s.hit = want.MatchString(l.Why); l.Transport != "nats" || !s.hit {
			s.Errorf("link %+v, want nats because of %s", l, want)
		}
	}
}

// notTheLinks is what a link says of a connection whose proof is wrong.
const notTheLinks = "it does not know this link's key: it belongs to another run, or to another program"

// meetAnotherRun leads the connections of a run to a rank of another run. Its ranks say whom they met and use NATS. No
// stranger ends a session of the other run, which goes on.
func (s *chaosRun) meetAnotherRun() string {
	s.onTwoNodes()
	args := s.overTCP()
	other := s.T.TempDir()
	encrypt := args[slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "halo.direct.encrypt=") })]
	l := s.nodes.begin(other, append(set("problem.preset=dirichlet", "halo.transport=direct", encrypt,
		"halo.direct.listen=10.77.0.0/24:"+otherPort), "-np", "2", "--host", "a:1,b:1")...)
	s.firewall("nat", "PREROUTING", "-p", "tcp", "--dport", chaosPorts, "-j", "REDIRECT", "--to-ports", otherPort)
	outcome := s.checkAnswer(s.launch(args...).end())
	why := notTheLinks
	if strings.HasSuffix(encrypt, "always") {
		why = "TLS: tls: failed to verify certificate"
	}
	s.checkFallback(why)
	l.signal(os.Interrupt)
	code, output := l.end()
	for _, link := range s.links(other) {
		if code != 130 || link.Transport != "direct" || !link.keptFromStrangers() {
			s.Errorf("the other run: exit code %d, %+v, %+v, want 130 and no socket lost to a stranger\n%s", code, link,
				link.Direct, output)
		}
	}
	for line := range strings.Lines(output) {
		if strings.Contains(line, "lost the socket") && !lostToSlowness.MatchString(line) {
			s.Errorf("the other run lost a socket: %s", line)
		}
	}
	return outcome
}

// lostToSlowness matches why a link may end its sockets where nothing breaks them: a machine that does not schedule a
// writer for 500 ms has the rows asked for over NATS, and the other end reads that the socket is closed.
var lostToSlowness = regexp.MustCompile(`\b(the neighbour had the rows over NATS before the socket took them|` +
	`read a frame: EOF)("|$)`)

// keptFromStrangers reports whether no stranger has ended a session of the link.
func (l linkReport) keptFromStrangers() bool {
	return l.Direct != nil && (l.Direct.Lost == 0 || lostToSlowness.MatchString(l.Direct.Reason))
}
