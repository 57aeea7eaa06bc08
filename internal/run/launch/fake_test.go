package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/net/roster"
)

// envFake makes the test binary a fake rank. Its value lists the behaviour of each rank (see fakeRank).
const envFake = "FAKE_RANKS"

// envFakeLauncher makes the test binary a launcher that starts fake ranks.
const envFakeLauncher = "FAKE_LAUNCHER"

var testBinary = os.Args[0]

// identities returns the identities of a run's ranks on one host.
func identities(size int) []roster.Identity {
	ids := make([]roster.Identity, size)
	for r := range ids {
		ids[r] = roster.Identity{RunID: "fake", Rank: r, Size: size, LocalRank: r, LocalSize: size}
	}
	return ids
}

func TestMain(m *testing.M) {
	if os.Getenv(envFakeLauncher) != "" {
		fakeLauncher()
	}
	if list, ok := os.LookupEnv(envFake); ok {
		id, _, err := roster.FromEnv(os.Environ())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		fakeRank(id, strings.Split(list, ";")[id.Rank])
	}
	os.Exit(m.Run())
}

// fakeRank never returns.
func fakeRank(id roster.Identity, what string) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM)
	ready := func() { fmt.Println("ready", os.Getpid()) }
	switch name, rest, _ := strings.Cut(what, ":"); name {
	case "good":
		fmt.Println("done met")
		os.Exit(0)
	case "above": // the tolerance
		fmt.Println("done missed")
		fmt.Fprintln(os.Stderr, RankBinary+": closing words")
		os.Exit(ExitMissed)
	case "identity":
		fmt.Println(strings.Join(id.Environ(), " "), os.Getenv("EXTRA"))
		fmt.Println("done met")
		os.Exit(0)
	case "crashes":
		ready()
		<-signals
		panic(rest)
	case "aborts": // as the C library does
		ready()
		<-signals
		fmt.Fprintln(os.Stderr, rest)
		_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
		time.Sleep(time.Hour)
	case "silent":
		ready()
		<-signals
		os.Exit(7)
	case "obeys": // stops when told to
		ready()
		<-signals
		fmt.Println("done interrupted")
		os.Exit(RankInterrupted)
	case "follows": // fails because another rank did
		ready()
		<-signals
		fmt.Fprintln(os.Stderr, RankBinary+": run aborted by another rank")
		os.Exit(RankConsequence)
	case "told": // fails because another rank did; SIGUSR1 stands for the message over NATS
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGUSR1)
		ready()
		<-told
		os.Exit(RankConsequence)
	case "misses": // fails because it misses another rank
		ready()
		<-signals
		fmt.Fprintln(os.Stderr, RankBinary+": timed out waiting for rank 1")
		os.Exit(RankConsequence)
	case "failsWhenTold":
		ready()
		<-signals
		fmt.Fprintln(os.Stderr, RankBinary+": "+rest)
		os.Exit(1)
	case "deaf": // ignores all signals
		ready()
		for range signals {
			fmt.Println("ignored a signal")
		}
	case "unready": // does not handle signals yet
		signal.Reset(syscall.SIGTERM)
		ready()
		time.Sleep(time.Hour)
	}
	fmt.Fprintln(os.Stderr, "no such fake rank:", what)
	os.Exit(2)
}

// fakeLauncher runs deaf ranks until it is killed.
func fakeLauncher() {
	if err := os.Unsetenv(envFakeLauncher); err != nil {
		panic(err)
	}
	job := Job{
		Path:   os.Args[0],
		RunID:  "fake",
		Ranks:  OneHost("here", 3),
		Hosts:  map[string]Host{"here": &Local{}},
		Output: func(_ int, _ Stream, line []byte) { fmt.Println(string(line)) },
		Say:    func(string) {},
	}
	_, err := job.Run(context.Background())
	fmt.Println("fake launcher:", err)
	os.Exit(1)
}

// trial runs fake ranks and records what a launcher would see.
type trial struct {
	job     Job
	events  chan roster.Event
	signals chan os.Signal
	pids    chan map[int]int // delivers the process id of each rank once all are ready

	reports bool          // rank 0 publishes its report before it ends well
	known   chan struct{} // closed when the launcher knows of the first event

	mu     sync.Mutex
	lines  []string
	said   []string
	aborts []roster.AbortError
}

// newTrial prepares one rank for each entry of ranks, the rank's behaviour (see fakeRank).
func newTrial(ranks ...string) *trial {
	tr := &trial{
		events:  make(chan roster.Event, 16),
		signals: make(chan os.Signal, 16),
		pids:    make(chan map[int]int, 1),
		known:   make(chan struct{}),
	}
	ready := map[int]int{}
	tr.job = Job{
		Path:    os.Args[0],
		HostEnv: map[string][]string{"here": {envFake + "=" + strings.Join(ranks, ";"), "EXTRA=extra"}},
		RunID:   "0123456789abcdef0123456789abcdef",
		Ranks:   OneHost("here", len(ranks)),
		Hosts:   map[string]Host{"here": &Local{}},
		Output: func(rank int, s Stream, line []byte) {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			if verdict, ok := strings.CutPrefix(string(line), "done "); ok {
				if rank == 0 && tr.reports {
					tr.events <- finished(configs.Verdict(verdict))
				}
				return
			}
			tr.lines = append(tr.lines, strings.TrimSuffix(string(TagStream.Append(nil, rank, s, line)), "\n"))
			if pid, ok := strings.CutPrefix(string(line), "ready "); ok {
				ready[rank], _ = strconv.Atoi(pid)
				if len(ready) == len(ranks) {
					tr.pids <- ready
				}
			}
		},
		Say:    func(text string) { tr.said = append(tr.said, text) },
		Events: tr.events,
		OnEvent: func() func(roster.Event) {
			once := sync.OnceFunc(func() { close(tr.known) })
			return func(roster.Event) { once() }
		}(),
		Signals: tr.signals,
		Abort: func(_ context.Context, e roster.AbortError) error {
			tr.aborts = append(tr.aborts, e)
			return nil
		},
		FailGrace: time.Minute,
		StopGrace: time.Minute,
		EndGrace:  time.Minute,
		KillGrace: time.Minute,
	}
	return tr
}

// report makes rank 0 send a report before it ends well.
func (tr *trial) report() { tr.reports = true }

// finished is the event with which rank 0 sends the report of a run.
func finished(verdict configs.Verdict) roster.Event {
	return roster.Event{Kind: roster.Finished, Sweeps: 10, Verdict: string(verdict),
		Report: json.RawMessage(`{"sweeps":10}`)}
}

// run runs the ranks. It calls when, if that is not nil, once all are ready.
func (tr *trial) run(t *testing.T, when func(pids map[int]int)) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	if when != nil {
		wg.Go(func() {
			select {
			case pids := <-tr.pids:
				when(pids)
			case <-ctx.Done():
			}
		})
	}
	out, err := tr.job.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("the ranks did not end; output:\n%s", strings.Join(tr.lines, "\n"))
	}
	wg.Wait()
	return out
}

func wantOutcome(t *testing.T, out Outcome, code int, message string) {
	t.Helper()
	got := ""
	if out.Err != nil {
		got = out.Err.Error()
	}
	if got != message {
		t.Errorf("error %q\nwant  %q", got, message)
	}
	if out.ExitCode() != code {
		t.Errorf("exit code %d, want %d", out.ExitCode(), code)
	}
}
