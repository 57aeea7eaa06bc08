package e2e

import (
	"bytes"
	"cmp"
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
	"text/tabwriter"
	"time"
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
