package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"jacobi/internal/roster/rostertest"
)

// chaosSweeps is how many sweeps the runs of TestChaos do, and chaosEvery how often they save their state.
const (
	chaosSweeps = 4000
	chaosEvery  = 150
)

var chaosProblem = []string{"grid.nx=97", "grid.ny=131", "solver.tolerance=0",
	fmt.Sprintf("solver.max_iterations=%d", chaosSweeps), "output.field=", "output.picture="}

// storm is one run with a fault.
type storm struct {
	*testing.T
	rand  *rand.Rand
	dir   string
	np    int
	want  answer
	fault string // what was done, for the table
	hit   bool   // the fault struck before the run had ended
}

// kinds are the faults; each returns how the run ended, once it has found that right.
var kinds = []struct {
	name string
	run  func(s *storm) string
}{
	{"kill a rank", (*storm).killRank},
	{"kill a rank, restart", (*storm).killAndRestart},
	{"stop a rank for 3 s", (*storm).stopRank},
	{"restart the NATS server", (*storm).restartServer},
	{"stop the launcher", (*storm).stopLauncher},
	{"a server comes back different", (*storm).changeServer},
	{"lose a server of a cluster", (*storm).failOver},
	{"cut a connection", (*storm).cutConnection},
	{"drop frames", func(s *storm) string { return s.harm(mischief{drop: 0.0005}) }},
	{"delay frames", func(s *storm) string { return s.harm(mischief{delay: 0.01, most: 20 * time.Millisecond}) }},
	{"duplicate frames", func(s *storm) string { return s.harm(mischief{twice: 0.3}) }},
	{"reorder frames", func(s *storm) string { return s.harm(mischief{late: 0.05}) }},
	{"kill during a checkpoint", (*storm).killInCheckpoint},
	{"corrupt a checkpoint byte", func(s *storm) string { return s.damage(flipByte) }},
	{"truncate a part", func(s *storm) string { return s.damage(truncate) }},
	{"fill the disk", (*storm).fillDisk},
	{"kill the launcher", func(s *storm) string { return s.damage(nil) }},
	{"interrupt twice at the outputs", (*storm).interruptAtOutputs},
	{"kill the launcher at the outputs", (*storm).killAtOutputs},
	{"start a second run there", (*storm).secondRun},
	{"plant a pipe among the outputs", (*storm).plantPipe},
}

// Three runs of each kind, each with its fault at a random moment, end with the right answer or the right error, within
// their limit. CHAOS_SEED and CHAOS_RUNS choose others.
func TestChaos(t *testing.T) {
	first, runs := fromEnv(t, "CHAOS_SEED", 1), fromEnv(t, "CHAOS_RUNS", 3*len(kinds))
	want, _ := solve(t, append(set(chaosProblem...), "-np", "1")...)
	var mu sync.Mutex
	var rows []string
	hits := map[string]int{}
	t.Run("runs", func(t *testing.T) {
		for seed := first; seed < first+runs; seed++ {
			kind := kinds[seed%len(kinds)]
			t.Run(fmt.Sprintf("%d %s", seed, kind.name), func(t *testing.T) {
				t.Parallel()
				s := &storm{T: t, rand: rand.New(rand.NewPCG(uint64(seed), 1)), dir: t.TempDir(), want: want}
				s.np = 2 + s.rand.IntN(3)
				np, outcome, start := s.np, "FAILED", time.Now()
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					if !s.hit {
						outcome += " (the run was faster than the fault)"
					} else {
						hits[kind.name]++
					}
					rows = append(rows, fmt.Sprintf("%4d\t%s\t%d\t%s\t%s\t%.1f s", seed, kind.name, np, s.fault,
						outcome, time.Since(start).Seconds()))
				}()
				outcome = kind.run(s)
			})
		}
	})
	slices.SortFunc(rows, func(a, b string) int { return cmp.Compare(a, b) })
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "seed\tfault\tranks\twhat\toutcome\ttook")
	for _, r := range rows {
		fmt.Fprintln(w, r)
	}
	w.Flush()                // a buffer does not fail
	fmt.Printf("%s", &table) // which nobody would see of a test that passes, were it logged
	for _, k := range kinds {
		if runs >= 3*len(kinds) && hits[k.name] == 0 {
			t.Errorf("%s: no such fault struck before its run had ended", k.name)
		}
	}
}

func fromEnv(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// args returns the launcher's arguments: the problem with checkpoints, and what else is given.
func (s *storm) args(settings []string, more ...string) []string {
	all := append(slices.Clone(chaosProblem), fmt.Sprintf("checkpoint.every=%d", chaosEvery),
		"checkpoint.dir=checkpoints")
	return append(append(set(append(all, settings...)...), "-np", strconv.Itoa(s.np)), more...)
}

// transport chooses one.
func (s *storm) transport() string {
	return "halo.transport=" + []string{"p2p", "nats"}[s.rand.IntN(2)]
}

// start starts a run and waits until a checkpoint of a random sweep is there.
func (s *storm) start(args ...string) *live {
	s.Helper()
	checkpoints := filepath.Join(s.dir, "checkpoints")
	if err := os.MkdirAll(checkpoints, 0o777); err != nil {
		s.Fatal(err)
	}
	l := startLive(s.T, s.dir, args...)
	after := chaosEvery * (1 + s.rand.IntN(6))
	awaitName(s.T, checkpoints, func(name string) bool {
		sweeps, ok := sweepsOf(name)
		return ok && sweeps >= after
	}, l)
	s.fault = fmt.Sprintf("after sweep %d", after)
	return l
}

// sweepsOf reads the sweeps from the name of a checkpoint.
func sweepsOf(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, "sweep-")
	digits, _, _ := strings.Cut(rest, "-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}

// victim chooses one of the ranks that run; 0 if there is none any more.
func (s *storm) victim(l *live) int {
	pids := l.ranks()
	if len(pids) == 0 {
		return 0
	}
	return pids[s.rand.IntN(len(pids))]
}

// strike sends a signal to a rank.
func (s *storm) strike(l *live, sig syscall.Signal) (pid int) {
	pid = s.victim(l)
	s.hit = pid != 0 && syscall.Kill(pid, sig) == nil
	return pid
}

// right finds that a run has ended well and with the right answer.
func (s *storm) right(code int, output string) string {
	s.Helper()
	if code != 0 {
		s.Fatalf("exit code %d\n%s", code, output)
	}
	r := readReport(s.T, filepath.Join(s.dir, "out"))
	history, err := os.ReadFile(filepath.Join(s.dir, "out", "history.csv"))
	if err != nil {
		s.Fatal(err)
	}
	if got := (answer{r.FieldSHA256, string(history), r.Sweeps, r.StopReason}); got != s.want {
		s.Fatalf("field %s, want %s; histories equal: %v\n%s", got.sha, s.want.sha, got.history == s.want.history,
			output)
	}
	if r.ResumedAfter > 0 {
		return fmt.Sprintf("right SHA-256, resumed after %d sweeps", r.ResumedAfter)
	}
	return "right SHA-256"
}

// killed finds that a run has ended by the error of a killed rank.
func (s *storm) killed(code int, output string) string {
	s.Helper()
	if code != 1 || !regexp.MustCompile(`launcher: rank \d on \S+ was killed by SIGKILL`).MatchString(output) {
		s.Fatalf("exit code %d\n%s\nwant 1 and the killed rank", code, output)
	}
	return "right error"
}

func (s *storm) killRank() string {
	l := s.start(s.args([]string{s.transport()})...)
	s.strike(l, syscall.SIGKILL)
	begin := time.Now()
	code, output := l.end()
	if took := time.Since(begin); took > 10*time.Second {
		s.Errorf("the run ended %v after the kill, want at most 10s", took)
	}
	l.leavesNothing()
	if code == 0 { // it had all but ended
		s.hit = false
		return s.right(code, output)
	}
	if !regexp.MustCompile(`launcher: --restart goes on after sweep \d+, from checkpoints: \S*launcher ` +
		`.*--restart\n$`).MatchString(output) {
		s.Errorf("the user is not told of the checkpoint\n%s", output)
	}
	return s.killed(code, output)
}

func (s *storm) killAndRestart() string {
	l := s.start(s.args([]string{s.transport()}, "--max-restarts", "3")...)
	s.strike(l, syscall.SIGKILL)
	outcome := s.right(l.end())
	l.leavesNothing()
	return outcome
}

// stopRank uses NATS, over which the run lasts long enough.
func (s *storm) stopRank() string {
	l := s.start(s.args([]string{"halo.transport=nats"})...)
	if pid := s.strike(l, syscall.SIGSTOP); s.hit {
		time.Sleep(3 * time.Second) // the fault itself
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	return s.right(l.end())
}

// stopLauncher stops the launcher by either signal, for longer than the ranks have patience with each other.
func (s *storm) stopLauncher() string {
	sig := []syscall.Signal{syscall.SIGTSTP, syscall.SIGSTOP}[s.rand.IntN(2)]
	l := s.start(s.args([]string{s.transport(), "run.liveness=1s", "halo.timeout=1s"})...)
	s.fault += ", " + sig.String()
	s.hit = len(l.ranks()) > 0
	if err := l.cmd.Process.Signal(sig); err == nil {
		time.Sleep(3 * time.Second) // the fault itself
		_ = l.cmd.Process.Signal(syscall.SIGCONT)
	}
	return s.right(l.end())
}

// changeServer lets the server come back with another password.
func (s *storm) changeServer() string {
	srv := rostertest.StartWith(s, server.Options{Username: "jacobi", Password: "right"})
	url := strings.Replace(srv.URL(), "nats://", "nats://jacobi:right@", 1)
	l := s.start(s.args(append(overNATS(url), "run.liveness=2s"))...)
	srv.Stop()
	srv.RunChanged(func(o *server.Options) { o.Password = "changed" })
	s.hit = len(l.ranks()) > 0
	code, output := l.end()
	if code == 0 {
		return s.right(code, output)
	}
	if code != 1 || !strings.Contains(output, "could not be made again: nats: Authorization Violation: ") {
		s.Fatalf("exit code %d\n%s\nwant 1 and the refusal", code, output)
	}
	return "right error"
}

// overNATS returns the settings of a run whose frames all pass the server.
func overNATS(url string) []string { return []string{"halo.transport=nats", "nats.url=" + url} }

func (s *storm) restartServer() string {
	srv := rostertest.Start(s, 0)
	l := s.start(s.args(overNATS(srv.URL()))...)
	srv.Stop()
	s.hit = len(l.ranks()) > 0
	away := time.Duration(s.rand.IntN(1000)) * time.Millisecond
	s.fault += fmt.Sprintf(", away for %v", away)
	time.Sleep(away) // the fault itself
	srv.Run()
	return s.right(l.end())
}

// failOver stops one of two servers, on each of which there are likely to be ranks.
func (s *storm) failOver() string {
	cluster := server.ClusterOpts{Name: "pair", Host: "127.0.0.1", Port: server.RANDOM_PORT}
	first := rostertest.StartWith(s, server.Options{ServerName: "first", Cluster: cluster})
	second := rostertest.StartWith(s, server.Options{ServerName: "second", Cluster: cluster,
		Routes: server.RoutesFromStr(first.Route())})
	l := s.start(s.args(overNATS(first.URL() + "," + second.URL()))...)
	s.hit = len(l.ranks()) > 0
	first.Stop()
	return s.right(l.end())
}

// behindProxy returns a proxy in front of a server of its own.
func (s *storm) behindProxy(m mischief) *proxy {
	u, err := url.Parse(rostertest.Start(s, 0).URL())
	if err != nil {
		s.Fatal(err)
	}
	return newProxy(s.T, u.Host, s.rand.Uint64(), m)
}

func (s *storm) cutConnection() string {
	p := s.behindProxy(mischief{})
	l := s.start(s.args(overNATS(p.url()))...)
	rank := s.rand.IntN(s.np)
	s.fault += fmt.Sprintf(", of rank %d", rank)
	s.hit = p.cut(rank) == nil && len(l.ranks()) > 0
	return s.right(l.end())
}

func (s *storm) harm(m mischief) string {
	p := s.behindProxy(m)
	l := startLive(s.T, s.dir, s.args(overNATS(p.url()))...)
	code, output := l.end()
	s.fault = fmt.Sprintf("%d frames", p.harmed())
	s.hit = p.harmed() > 0
	return s.right(code, output)
}

// killInCheckpoint kills a rank while a checkpoint is being written, without or with a restart.
func (s *storm) killInCheckpoint() string {
	restart := s.rand.IntN(2) == 0
	args := s.args([]string{s.transport()})
	if restart {
		args = append(args, "--max-restarts", "3")
	}
	l := s.start(args...)
	awaitName(s.T, filepath.Join(s.dir, "checkpoints"),
		func(name string) bool { return strings.HasSuffix(name, ".unsealed") }, l)
	s.strike(l, syscall.SIGKILL)
	code, output := l.end()
	l.leavesNothing()
	if left, err := filepath.Glob(filepath.Join(s.dir, "checkpoints", ".*")); err != nil || len(left) > 0 {
		s.Errorf("%v, %v: half a checkpoint was left", left, err)
	}
	if code == 0 {
		return s.right(code, output)
	}
	if restart {
		s.Fatalf("exit code %d\n%s", code, output)
	}
	// It goes on by hand, with another number of ranks.
	first := s.killed(code, output)
	s.np = 1 + s.rand.IntN(5)
	out := run(s.T, s.dir, "launcher", s.args([]string{s.transport()}, "--restart")...)
	return first + "; --restart: " + s.right(out.code, out.stderr)
}

func flipByte(r *rand.Rand, path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	at := r.IntN(len(b))
	b[at] ^= 1 << r.IntN(8)
	return fmt.Sprintf("byte %d of %s", at, filepath.Base(path)), os.WriteFile(path, b, 0o666)
}

func truncate(r *rand.Rand, path string) (string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	n := r.Int64N(fi.Size())
	return fmt.Sprintf("%s to %d bytes", filepath.Base(path), n), os.Truncate(path, n)
}

// damage kills the launcher, damages the newest checkpoint, or both that are kept, and goes on.
func (s *storm) damage(how func(r *rand.Rand, path string) (string, error)) string {
	l := s.start(s.args([]string{s.transport()})...)
	s.hit = len(l.ranks()) > 0
	if err := l.cmd.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	code, output := l.end()
	sets := checkpoints(s.T, filepath.Join(s.dir, "checkpoints"))
	if len(sets) == 0 { // a slow disk and a fast run
		return s.right(code, output)
	}
	all := how != nil && s.rand.IntN(3) == 0
	var damaged []string
	for i := len(sets) - 1; how != nil && i >= 0 && (all || len(damaged) == 0); i-- {
		files, err := os.ReadDir(sets[i])
		if err != nil {
			s.Fatal(err)
		}
		file := files[s.rand.IntN(len(files))].Name()
		what, err := how(s.rand, filepath.Join(sets[i], file))
		if err != nil {
			s.Fatal(err)
		}
		s.fault += ", " + what
		damaged = append(damaged, filepath.Base(sets[i]))
	}
	s.np = 1 + s.rand.IntN(5)
	out := run(s.T, s.dir, "launcher", s.args([]string{s.transport()}, "--restart")...)
	for _, set := range damaged {
		if !strings.Contains(out.stderr, set+": ") {
			s.Errorf("%s is not named\n%s", set, out.stderr)
		}
	}
	if len(damaged) == len(sets) {
		if out.code != 1 || !strings.Contains(out.stderr, "no checkpoint is in order: ") {
			s.Fatalf("exit code %d\n%s\nwant 1 and no checkpoint in order", out.code, out.stderr)
		}
		return "right error: no checkpoint is in order"
	}
	return s.right(out.code, out.stderr)
}

// fillDisk fills the small file system on which the checkpoints are.
func (s *storm) fillDisk() string {
	dir := filepath.Join(s.dir, "checkpoints")
	if err := os.Mkdir(dir, 0o777); err != nil {
		s.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=400k"); err != nil {
		s.hit = true // nothing that a table of faults could blame on the fault
		return fmt.Sprintf("NOT RUN: a tmpfs cannot be mounted: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			s.Error(err)
		}
	}()
	l := s.start(s.args([]string{"halo.transport=nats"})...)
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		s.Fatal(err)
	}
	for range 1 << 10 { // more than there is room for
		if _, err = filler.Write(make([]byte, 1<<10)); err != nil {
			break
		}
	}
	filler.Close()
	code, output := l.end()
	s.hit = strings.Contains(output, "failed, the run goes on; the last good one is of sweep ")
	return s.right(code, output)
}
