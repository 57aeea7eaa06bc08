package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/proctest"
)

// cluster is a set of hosts on one machine. Each host is a network namespace with its own address, connected by a
// bridge. Launchers run on the first host. The others also have their own PID and UTS namespaces, so that they share no
// memory, and an sshd.
type cluster struct {
	t      *testing.T
	prefix string // of the namespaces' names
	dir    string // keys and configuration of ssh
	names  []string
}

// clusters counts clusters, to give each its own name.
var clusters atomic.Int32

// canMakeHosts returns the reason why this machine cannot have a cluster, or "".
func canMakeHosts() string {
	if os.Geteuid() != 0 {
		return "not root"
	}
	for _, program := range []string{"ip", "sshd", "ssh", "ssh-keygen", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed"
		}
	}
	name := fmt.Sprintf("jacobi-%d-%d", os.Getpid(), clusters.Add(1))
	out, err := exec.Command("ip", "netns", "add", name).CombinedOutput()
	if err == nil {
		out, err = exec.Command("ip", "netns", "exec", name, "unshare", "--uts", "--pid", "--fork", "--mount-proc",
			"true").CombinedOutput()
		_ = exec.Command("ip", "netns", "del", name).Run()
	}
	if err != nil {
		return strings.TrimSpace(string(out))
	}
	return ""
}

// Each subtest is skipped visibly if programs are missing that other tests need and that Debian provides.
func TestOptionalPrograms(t *testing.T) {
	t.Parallel()
	t.Run("hosts", func(t *testing.T) { needHosts(t) })
	t.Run("arm64", func(t *testing.T) { needARM64(t) })
	t.Run("vtk", func(t *testing.T) { needPython(t, "vtk", "numpy") })
	t.Run("compose", func(t *testing.T) { composeWords(t) })
	for _, program := range []string{"mpirun.openmpi", "mpiexec.hydra", "srun", "iptables", "chromium", "prometheus"} {
		t.Run(program, func(t *testing.T) { installed(t, program) })
	}
}

// needHosts skips a test visibly on a machine that cannot have a cluster.
func needHosts(t *testing.T) {
	t.Helper()
	if why := canMakeHosts(); why != "" {
		t.Skipf("NOT RUN: %s: no network namespaces with sshd: %s", t.Name(), why)
	}
}

// newCluster makes hosts a, b, c, ...: the first one for launchers, the others with an sshd.
func newCluster(t *testing.T, hosts int) *cluster {
	t.Helper()
	needHosts(t)
	c := &cluster{t: t, prefix: fmt.Sprintf("jacobi-%d-%d-", os.Getpid(), clusters.Add(1)), dir: t.TempDir()}
	for i := range hosts {
		c.names = append(c.names, string(rune('a'+i)))
	}
	c.network()
	c.keys()
	for _, name := range c.names[1:] {
		c.sshd(name)
	}
	return c
}

func (c *cluster) ns(name string) string { return c.prefix + name }
func (c *cluster) address(i int) string  { return fmt.Sprintf("10.77.0.%d", i+1) }

// sh runs a command that must succeed.
func (c *cluster) sh(words ...string) {
	c.t.Helper()
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		c.t.Fatalf("%v: %v\n%s", words, err, out)
	}
}

// network makes the namespaces, their network links and their name resolution.
func (c *cluster) network() {
	c.t.Helper()
	hostsFile := "127.0.0.1 localhost\n"
	for i, name := range c.names {
		hostsFile += c.address(i) + " " + name + "\n"
	}
	add := func(name string) {
		c.sh("ip", "netns", "add", c.ns(name))
		c.t.Cleanup(func() {
			c.sh("ip", "netns", "del", c.ns(name))
			os.RemoveAll("/etc/netns/" + c.ns(name))
		})
		c.sh("ip", "-n", c.ns(name), "link", "set", "lo", "up")
		etc := "/etc/netns/" + c.ns(name) // ip netns exec mounts its files over those of /etc
		c.write(filepath.Join(etc, "hosts"), hostsFile)
		c.write(filepath.Join(etc, "resolv.conf"), "nameserver 127.0.0.1\n") // refuses at once: no server listens there
	}
	add("net")
	c.sh("ip", "-n", c.ns("net"), "link", "add", "bridge", "type", "bridge")
	c.sh("ip", "-n", c.ns("net"), "link", "set", "bridge", "up")
	for i, name := range c.names {
		add(name)
		c.sh("ip", "-n", c.ns("net"), "link", "add", "name", name, "type", "veth", "peer", "name", "eth0", "netns",
			c.ns(name))
		c.sh("ip", "-n", c.ns("net"), "link", "set", "dev", name, "master", "bridge", "up")
		c.sh("ip", "-n", c.ns(name), "address", "add", c.address(i)+"/24", "dev", "eth0")
		c.sh("ip", "-n", c.ns(name), "link", "set", "eth0", "up")
	}
}

func (c *cluster) write(path, text string) {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// keys makes the keys of the hosts, of the user and of an unknown user, and the configurations of ssh and sshd.
func (c *cluster) keys() {
	c.t.Helper()
	file := func(name string) string { return filepath.Join(c.dir, name) }
	for _, name := range []string{"host", "user", "stranger"} {
		c.sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file(name))
	}
	hostKey, err := os.ReadFile(file("host.pub"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(file("known_hosts"), "* "+string(hostKey))
	c.write(file("sshd_config"), "HostKey "+file("host")+"\nAuthorizedKeysFile "+file("user.pub")+
		"\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n"+
		"SetEnv HOME="+c.dir+"\n") // logins must not wait for what this machine's user has in .bashrc
	for _, who := range []string{"user", "stranger"} {
		c.write(file(who+".config"), "IdentityFile "+file(who)+"\nIdentitiesOnly yes\nUserKnownHostsFile "+file(
			"known_hosts")+"\nGlobalKnownHostsFile none\n")
	}
}

// ssh returns the launcher's flag to reach hosts with the keys of who: user or stranger.
func (c *cluster) ssh(who string) []string {
	return []string{"--ssh", "ssh -F " + filepath.Join(c.dir, who+".config")}
}

// sshd starts the ssh server of a host and waits until it answers.
func (c *cluster) sshd(name string) {
	c.t.Helper()
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		c.t.Fatal(err)
	}
	path, err := exec.LookPath("sshd")
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := c.in(name, exec.Command(path, "-D", "-e", "-f", filepath.Join(c.dir, "sshd_config")), "--uts", "--pid",
		"--fork", "--kill-child", "--mount-proc")
	log := new(strings.Builder)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill() // this ends the whole PID namespace
		_ = cmd.Wait()
		if c.t.Failed() {
			c.t.Logf("sshd on %s:\n%s", name, log)
		}
	})
	c.await("sshd on "+name, func() bool {
		return exec.Command("ip", "netns", "exec", c.ns(c.names[0]), "ssh", "-F", filepath.Join(c.dir, "user.config"),
			name, "true").Run() == nil
	})
}

// await polls until done returns true, for events that do not notify the test.
func (c *cluster) await(what string, done func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: not within 30s", what)
		}
	}
}

// through makes cmd run by way of another command: words, followed by the arguments of cmd.
func through(t *testing.T, cmd *exec.Cmd, words ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(words[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args = slices.Concat(words, []string{cmd.Path}, cmd.Args[1:])
	cmd.Path = path
	return cmd
}

// in makes cmd run on a host, in new namespaces as unshare creates them.
func (c *cluster) in(host string, cmd *exec.Cmd, unshare ...string) *exec.Cmd {
	c.t.Helper()
	words := slices.Concat([]string{"ip", "netns", "exec", c.ns(host), "unshare"}, unshare,
		[]string{"sh", "-c", "hostname " + host + ` && exec "$0" "$@"`})
	return through(c.t, cmd, words...)
}

// on makes cmd run on the first host, as the same process.
func (c *cluster) on(cmd *exec.Cmd) *exec.Cmd { return c.in(c.names[0], cmd, "--uts") }

// run runs the launcher on the first host and waits for its end.
func (c *cluster) run(dir string, args ...string) outcome {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	return finish(c.t, ctx, c.on(command(ctx, dir, "launcher", args...)))
}

// start starts the launcher on the first host.
func (c *cluster) start(dir string, args ...string) *live {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	c.t.Cleanup(cancel)
	return startCommand(c.t, c.on(command(ctx, dir, "launcher", args...)))
}

// processes returns the processes called program in the network namespace of a host.
func (c *cluster) processes(host, program string) []int {
	c.t.Helper()
	var own unix.Stat_t
	if err := unix.Stat("/var/run/netns/"+c.ns(host), &own); err != nil {
		c.t.Fatal(err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		c.t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		var ns unix.Stat_t
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil && strings.TrimSpace(string(comm)) == program &&
			unix.Stat(fmt.Sprintf("/proc/%d/ns/net", pid), &ns) == nil && ns.Ino == own.Ino {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// all returns the processes of all runs on all hosts.
func (c *cluster) all() (pids []int) {
	for _, host := range c.names {
		for _, program := range []string{"launcher", "jacobi-rank", "ssh"} {
			pids = append(pids, c.processes(host, program)...)
		}
	}
	return pids
}

// leavesNothing checks that all processes of runs have ended on all hosts within limit.
func (c *cluster) leavesNothing(limit time.Duration) {
	c.t.Helper()
	deadline := time.Now().Add(limit)
	for _, pid := range c.all() {
		p, err := proctest.Watch(c.t, pid)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			c.t.Fatal(err)
		}
		if err := p.AwaitEnd(max(0, time.Until(deadline))); err != nil {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			c.t.Errorf("process %d outlives its run by %v: %q (%v)", pid, limit, line, err)
		}
	}
}
