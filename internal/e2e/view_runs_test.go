package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"jacobi/internal/observe/output"
)

// shownRun is a run with a page. Its ranks sweep until they are interrupted.
type shownRun struct {
	*live
	url       string
	hosts     []string     // by rank; nil for this machine
	interrupt func() error // ends the run
}

// ofLauncher returns the run of a launcher.
func ofLauncher(l *live) shownRun {
	return shownRun{live: l, url: l.viewURL(), interrupt: func() error { return l.cmd.Process.Signal(os.Interrupt) }}
}

// ofScheduler returns the run of two ranks that another program has started.
func ofScheduler(l *live) shownRun {
	l.t.Helper()
	s := shownRun{live: l, url: l.viewURL()}
	rank := l.allRanks(2)[1]
	s.interrupt = func() error { return syscall.Kill(rank, syscall.SIGINT) }
	return s
}

// The page of a run follows it, wherever its ranks are and whatever has started them. At the end it shows the values
// that are in the files.
func TestViewOfARun(t *testing.T) {
	t.Parallel()
	ranks := set(append(endless, "view.listen=127.0.0.1:0")...)
	for _, c := range []struct {
		name  string
		start func(t *testing.T, dir string) shownRun
	}{
		{"launcher", func(t *testing.T, dir string) shownRun {
			return ofLauncher(startLive(t, dir, append(onRanks(2, endless...), "--view")...))
		}},
		{"ssh", func(t *testing.T, dir string) shownRun {
			c := newCluster(t, 2)
			s := ofLauncher(c.start(dir, slices.Concat(c.ssh("user"), set(endless...),
				[]string{"--host", "a:1,b:1", "-np", "2", "--view"})...))
			s.hosts = []string{"a", "b"}
			s.url = forward(t, s.url, "/var/run/netns/"+c.ns("a"))
			return s
		}},
		{"agents", func(t *testing.T, dir string) shownRun {
			u := startServer(t)
			for range 2 {
				startAgent(t, t.TempDir(), u, "--slots", "1")
			}
			return ofLauncher(startLive(t, dir, onNodes(u, append(onRanks(2, endless...), "--view")...)...))
		}},
		{"mpirun", func(t *testing.T, dir string) shownRun {
			path := installed(t, "mpirun.openmpi")
			return ofScheduler(startCommand(t, through(t, command(limited(t), dir, "jacobi-rank", ranks...), path,
				"-np", "2", "--allow-run-as-root", "--oversubscribe")))
		}},
		{"srun", func(t *testing.T, dir string) shownRun {
			needHosts(t)
			installed(t, "srun")
			slurm, err := filepath.Abs("testdata/slurm.sh")
			if err != nil {
				t.Fatal(err)
			}
			s := ofScheduler(startCommand(t, through(t, command(limited(t), dir, "jacobi-rank", ranks...), "unshare",
				"--fork", "--pid", "--kill-child", "--mount-proc", "--net", "--uts", "sh", slurm, t.TempDir(), "srun",
				"--immediate=60", "-n", "2")))
			s.hosts = []string{"localhost", "localhost"}
			s.url = forward(t, s.url, fmt.Sprintf("/proc/%d/ns/net", s.cmd.Process.Pid))
			return s
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := c.start(t, dir)
			p := browse(t, s.url)
			p.await("window.app && app.field.frame && app.chart.points.length > 1 && app.ranks.list[1]?.glups > 0")
			s.yield()
			p.await(`byId("state").textContent === "running" && app.progress.sweeps > app.field.frame.sweeps`)
			p.showsTheEnd(s, dir)
		})
	}
}

// A page that is open goes on with a run that starts again, and says why it did.
func TestViewGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	checkpoints := filepath.Join(dir, "checkpoints")
	if err := os.Mkdir(checkpoints, 0o777); err != nil {
		t.Fatal(err)
	}
	s := ofLauncher(startLive(t, dir, append(set(append(endless, "checkpoint.every=200",
		"checkpoint.dir=checkpoints")...), "-np", "2", "--view", "--max-restarts", "1")...))
	p := browse(t, s.url)
	p.await("window.app && app.field.frame && app.ranks.list.length === 2")
	var loaded float64
	p.eval("performance.timeOrigin", &loaded)
	awaitName(t, checkpoints, isCheckpoint, s.live)
	kill(t, s.allRanks(2)[1])
	p.await(`/^rank \d on \S+ was killed by SIGKILL .*; restart 1 of 1: on after sweep \d+, from checkpoints$/.test(
		byId("warnings").innerText.trim())`)
	var before uint64
	p.eval("app.field.frame.number", &before)
	p.await(fmt.Sprintf(`byId("state").textContent === "running" && app.field.frame.number > %d`, before))
	r := p.showsTheEnd(s, dir)
	var shown struct {
		Loaded float64
		First  [2]float64
	}
	p.eval("({loaded: performance.timeOrigin, first: app.chart.points[0]})", &shown)
	if r.ResumedAfter == 0 || shown.First[0] != 0 || shown.Loaded != loaded {
		t.Errorf("resumed after %d sweeps; the history begins with %v; the page was loaded at %v and %v",
			r.ResumedAfter, shown.First, loaded, shown.Loaded)
	}
}

// showsTheEnd interrupts the run of two ranks and checks that the page then shows what is in its files.
func (p *page) showsTheEnd(s shownRun, dir string) output.Report {
	p.t.Helper()
	p.check(s.interrupt())
	p.await(`byId("state").textContent === "ended"`)
	s.ends(130)
	r := wholeReport(p.t, dir)
	// The state, the ranks, the result and the field come one after another.
	p.await(fmt.Sprintf(`app.field.frame.sweeps === %[1]d && byId("facts").textContent.includes(%[2]q) &&
		app.chart.points.at(-1)[0] === %[1]d - 1 && app.ranks.list.every(k => k.sweeps === %[1]d)`,
		r.Sweeps, r.FieldHash))
	p.sameField(readField(p.t, filepath.Join(dir, "out", "field.npy"), endlessNX, endlessNY), endlessNX)
	var shown struct {
		Last   [2]float64
		Result string
		Sweeps []int
		Hosts  []string
	}
	p.eval(`({last: app.chart.points.at(-1), result: byId("facts").textContent,
		sweeps: app.ranks.list.map(k => k.sweeps), hosts: app.ranks.list.map(k => k.host)})`, &shown)
	if shown.Last != [2]float64{float64(r.Sweeps - 1), float64(*r.Norm)} ||
		!strings.Contains(shown.Result, r.FieldHash) || !slices.Equal(shown.Sweeps, []int{r.Sweeps, r.Sweeps}) ||
		s.hosts != nil && !slices.Equal(shown.Hosts, s.hosts) {
		p.t.Errorf("the page shows %+v, the report has %d sweeps with norm %g on %v", shown, r.Sweeps, *r.Norm, s.hosts)
	}
	p.quiet()
	return r
}

// forward makes a page that is served in a network namespace reachable from here, as ssh -L does, and returns its URL.
func forward(t *testing.T, page, namespace string) string {
	t.Helper()
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	server := u.Host
	go func() {
		for {
			here, err := l.Accept()
			if err != nil {
				return
			}
			there, err := dialIn(t.Context(), namespace, server)
			if err != nil {
				t.Error(err)
				here.Close()
				return
			}
			go relay(here, there)
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// relay copies both ways until one end is closed.
func relay(a, b net.Conn) {
	go func() {
		_, _ = io.Copy(a, b) // ends when either is closed
		a.Close()
	}()
	_, _ = io.Copy(b, a)
	b.Close()
}

// dialIn connects to an address in a network namespace.
func dialIn(ctx context.Context, namespace, address string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread stays in the namespace, and ends with the goroutine
		var there *os.File
		if there, err = os.Open(namespace); err != nil {
			return
		}
		defer there.Close()
		if err = unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err == nil {
			conn, err = new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}()
	<-done
	return conn, err
}
