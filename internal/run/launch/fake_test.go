package launch

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

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
		os.Exit(rankMissed)
	case "identity":
		fmt.Println(strings.Join(id.Environ(), " "), os.Getenv("EXTRA"), strings.Join(os.Args[1:], " "))
		fmt.Println("done met")
		os.Exit(0)
	case "fails":
		fmt.Fprintln(os.Stderr, RankBinary+": "+rest)
		os.Exit(1)
	case "crashes":
		panic(rest)
	case "aborts": // as the C library does
		fmt.Fprintln(os.Stderr, rest)
		_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
		time.Sleep(time.Hour)
	case "silent":
		os.Exit(7)
	case "obeys": // stops when told to
		ready()
		<-signals
		fmt.Println("done interrupted")
		os.Exit(rankInterrupted)
	case "follows": // fails because another rank did
		ready()
		<-signals
		fmt.Fprintln(os.Stderr, RankBinary+": run aborted by another rank")
		os.Exit(rankConsequence)
	case "told": // fails because another rank did; SIGUSR1 stands for the message over NATS
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGUSR1)
		ready()
		<-told
		os.Exit(rankConsequence)
	case "misses": // fails because it misses another rank
		ready()
		<-signals
		fmt.Fprintln(os.Stderr, RankBinary+": timed out waiting for rank 1")
		os.Exit(rankConsequence)
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
		Env:    os.Environ(),
		RunID:  "fake",
		Ranks:  OneHost("here", 3),
		Output: func(_ int, _ Stream, line []byte) { fmt.Println(string(line)) },
		Say:    func(string) {},
	}
	_, err := job.Run(context.Background())
	fmt.Println("fake launcher:", err)
	os.Exit(1)
}
