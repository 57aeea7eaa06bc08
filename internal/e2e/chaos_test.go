package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Runs of TestChaos do chaosSweeps sweeps, and save their state every chaosEvery sweeps.
const (
	chaosSweeps = 4000
	chaosEvery  = 150
)

var chaosProblem = []string{"grid.nx=97", "grid.ny=131", "solver.tolerance=0",
	fmt.Sprintf("solver.max_iterations=%d", chaosSweeps), "output.field=", "output.picture="}

// chaosRun is one run with a fault.
type chaosRun struct {
	*testing.T
	rand  *rand.Rand
	dir   string
	np    int
	nodes *cluster // on which the run is; nil: this machine alone
	want  answer
	fault string // description of the fault, for the table
	hit   bool   // whether the fault happened before the run had ended
}

// kinds are the faults. run causes the fault, checks how the run ended, and describes that. The first ones, which may
// come too late, get more runs than the last ones.
var kinds = []struct {
	name string
	run  func(s *chaosRun) string
}{
	{"kill a rank", (*chaosRun).killRank},
	{"fill the disk", (*chaosRun).fillDisk},
	{"kill during a checkpoint", (*chaosRun).killInCheckpoint},
	{"kill a rank, restart", (*chaosRun).killAndRestart},
	{"stop a rank for 3 s", (*chaosRun).stopRank},
	{"stop while it exits", (*chaosRun).stopAtExit},
	{"restart the NATS server", (*chaosRun).restartServer},
	{"stop the launcher", (*chaosRun).stopLauncher},
	{"a server comes back different", (*chaosRun).changeServer},
	{"lose a server of a cluster", (*chaosRun).failOver},
	{"replayed beats", (*chaosRun).replayBeats},
	{"cut a connection", (*chaosRun).cutConnection},
	{"drop frames", func(s *chaosRun) string { return s.damageFrames(frameFaults{drop: 0.002}) }},
	{"delay frames", func(s *chaosRun) string {
		return s.damageFrames(frameFaults{delay: 0.01, maxDelay: 20 * time.Millisecond})
	}},
	{"duplicate frames", func(s *chaosRun) string { return s.damageFrames(frameFaults{duplicate: 0.3}) }},
	{"reorder frames", func(s *chaosRun) string { return s.damageFrames(frameFaults{reorder: 0.02}) }},
	{"kill a rank on two nodes", (*chaosRun).killOnNodes},
	{"stop a rank on two nodes", (*chaosRun).stopOnNodes},
	{"break sockets", (*chaosRun).breakSockets},
	{"pull a cable", (*chaosRun).pullCable},
	{"block the ports", (*chaosRun).blockPorts},
	{"meet another run", (*chaosRun).meetAnotherRun},
	{"corrupt a checkpoint byte", func(s *chaosRun) string { return s.damage(flipByte) }},
	{"truncate a part", func(s *chaosRun) string { return s.damage(truncate) }},
	{"kill the launcher", func(s *chaosRun) string { return s.damage(nil) }},
	{"interrupt twice at the outputs", (*chaosRun).interruptAtOutputs},
	{"kill the launcher at the outputs", (*chaosRun).killAtOutputs},
	{"start a second run there", (*chaosRun).secondRun},
	{"plant a pipe among the outputs", (*chaosRun).plantPipe},
}

// At least two runs of each kind, each with its fault at a random moment, end with the right answer or the right error
// within their time limit. CHAOS_SEED and CHAOS_RUNS choose other runs.
func TestChaos(t *testing.T) {
	t.Parallel()
	first, runs := fromEnv(t, "CHAOS_SEED", 1), fromEnv(t, "CHAOS_RUNS", 58)
	want, _ := solve(t, append(set(chaosProblem...), "-np", "1")...)
	var mu sync.Mutex
	var rows []string
	hits := map[string]int{}
	one := func(t *testing.T, seed int) {
		kind := kinds[seed%len(kinds)]
		s := &chaosRun{T: t, rand: rand.New(rand.NewPCG(uint64(seed), 1)), dir: t.TempDir(), want: want}
		s.np = 2 + s.rand.IntN(3)
		np, outcome, start := s.np, "FAILED", time.Now()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			if s.Skipped() {
				outcome = "NOT RUN"
				hits[kind.name]++
			} else if !s.hit {
				outcome += " (the run was faster than the fault)"
			} else {
				hits[kind.name]++
			}
			rows = append(rows, fmt.Sprintf("%4d  %-31s %d  %-50s %s, %.1f s", seed, kind.name, np, s.fault, outcome,
				time.Since(start).Seconds()))
		}()
		outcome = kind.run(s)
	}
	t.Run("runs", func(t *testing.T) {
		for seed := first; seed < first+runs; seed++ {
			t.Run(fmt.Sprintf("%d %s", seed, kinds[seed%len(kinds)].name), func(t *testing.T) {
				t.Parallel()
				one(t, seed)
			})
		}
	})
	// A run may end before its fault strikes: four in ten do before a rank is stopped at its exit.
	for seed := first + runs; runs >= 2*len(kinds) && seed < first+runs+20*len(kinds); seed++ {
		if name := kinds[seed%len(kinds)].name; hits[name] == 0 {
			t.Run(fmt.Sprintf("%d %s", seed, name), func(t *testing.T) { one(t, seed) })
		}
	}
	slices.Sort(rows)
	t.Logf("seed, fault, ranks, what, outcome, time\n%s", strings.Join(rows, "\n"))
	for _, k := range kinds {
		if runs >= 2*len(kinds) && hits[k.name] == 0 {
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

// args returns the launcher's arguments: the problem with checkpoints, the settings and more.
func (s *chaosRun) args(settings []string, more ...string) []string {
	all := append(slices.Clone(chaosProblem), fmt.Sprintf("checkpoint.every=%d", chaosEvery),
		"checkpoint.dir=checkpoints")
	return append(append(set(append(all, settings...)...), "-np", strconv.Itoa(s.np)), more...)
}

// transport chooses a transport at random.
func (s *chaosRun) transport() string {
	return "halo.transport=" + []string{"p2p", "nats"}[s.rand.IntN(2)]
}

// launch starts a run.
func (s *chaosRun) launch(args ...string) *live {
	s.Helper()
	if s.nodes != nil {
		return s.nodes.start(s.dir, args...)
	}
	return startLive(s.T, s.dir, args...)
}

// start starts a run and waits for the checkpoint of a random sweep or a later one.
func (s *chaosRun) start(args ...string) *live {
	s.Helper()
	checkpoints := filepath.Join(s.dir, "checkpoints")
	if err := os.MkdirAll(checkpoints, 0o777); err != nil {
		s.Fatal(err)
	}
	l := s.launch(args...)
	after := chaosEvery * (1 + s.rand.IntN(6))
	awaitName(s.T, checkpoints, func(name string) bool {
		sweeps, ok := sweepsOf(name)
		return ok && sweeps >= after
	}, l)
	s.fault = strings.TrimPrefix(fmt.Sprintf("%s, after sweep %d", s.fault, after), ", ")
	return l
}

// sweepsOf reads the sweeps from the name of a checkpoint.
func sweepsOf(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, "sweep-")
	digits, _, _ := strings.Cut(rest, "-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}

// checkAnswer checks that a run has succeeded with the right answer.
func (s *chaosRun) checkAnswer(code int, output string) string {
	s.Helper()
	if code != 0 {
		s.Fatalf("exit code %d\n%s", code, output)
	}
	got, r := answerIn(s.T, filepath.Join(s.dir, "out"))
	if got != s.want {
		s.Fatalf("field %s, want %s; histories equal: %v\n%s", got.sha, s.want.sha, got.history == s.want.history,
			output)
	}
	if r.ResumedAfter > 0 {
		return fmt.Sprintf("right SHA-256, resumed after %d sweeps", r.ResumedAfter)
	}
	return "right SHA-256"
}

// checkKilled checks that a run has ended with the error of a killed rank.
func (s *chaosRun) checkKilled(code int, output string) string {
	s.Helper()
	if code != 1 || !regexp.MustCompile(`launcher: rank \d on \S+ was killed by SIGKILL`).MatchString(output) {
		s.Fatalf("exit code %d\n%s\nwant 1 and the killed rank", code, output)
	}
	return "right error"
}
