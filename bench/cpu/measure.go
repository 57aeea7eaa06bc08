package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// run describes a computation.
type run struct {
	n            int // columns and rows
	dtype, field string
	ranks        int
	depth        int    // 0: auto
	transport    string // "": auto
	sweeps       int
}

// measure runs a program once and returns the measured time in seconds.
type measure func() (float64, error)

// least measures all in turn, repeats times, and returns the shortest time of each in seconds.
func least(repeats int, all ...measure) ([]float64, error) {
	best := make([]float64, len(all))
	for i := range repeats {
		for j, m := range all {
			s, err := m()
			if err != nil {
				return nil, err
			}
			if i == 0 || s < best[j] {
				best[j] = s
			}
		}
	}
	return best, nil
}

func (b *bench) openMP(r run) measure {
	return func() (float64, error) {
		n := strconv.Itoa(r.n)
		return b.firstNumber(filepath.Join(b.peers, "jacobi_omp"), n, n, strconv.Itoa(r.sweeps), r.dtype, r.field)
	}
}

func (b *bench) copy(r run) measure {
	bytes := 4 * r.n * r.n
	if r.dtype == "float64" {
		bytes *= 2
	}
	return func() (float64, error) { return b.firstNumber(filepath.Join(b.peers, "copy"), strconv.Itoa(bytes)) }
}

func (b *bench) mpi(r run, options ...string) measure {
	n := strconv.Itoa(r.n)
	args := append([]string{"--allow-run-as-root", "-n", strconv.Itoa(r.ranks)}, options...)
	args = append(args, filepath.Join(b.peers, "jacobi_mpi"), n, n, strconv.Itoa(r.sweeps))
	return func() (float64, error) { return b.firstNumber("mpirun", args...) }
}

// firstNumber runs a peer with one thread per core and returns the first number that it prints.
func (b *bench) firstNumber(path string, args ...string) (float64, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(b.cores))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	first, _, _ := strings.Cut(string(out), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return seconds, nil
}

// report is the part of a run's report that is used here.
type report struct {
	Started time.Time `json:"started"`
	Times   struct {
		Setup  float64 `json:"setup_seconds"`
		Sweeps float64 `json:"sweeps_seconds"`
	} `json:"times"`
	Sweeps int `json:"sweeps"`
}

// product measures the time of the sweeps of a run.
func (b *bench) product(r run) measure {
	return func() (float64, error) {
		rep, err := b.launch(r)
		return rep.Times.Sweeps, err
	}
}

// first measures the time from the launcher's start to the first sweep.
func (b *bench) first(r run) measure {
	return func() (float64, error) {
		start := time.Now()
		rep, err := b.launch(r)
		return rep.Started.Sub(start).Seconds() + rep.Times.Setup, err
	}
}

func (b *bench) launch(r run) (rep report, err error) {
	n := strconv.Itoa(r.n)
	keys := []string{
		"grid.nx=" + n, "grid.ny=" + n, "grid.dtype=" + r.dtype, "device.backend=cpu",
		"solver.method=jacobi", "solver.tolerance=0", "solver.max_iterations=" + strconv.Itoa(r.sweeps),
		"output.dir=" + b.out, "output.field=", "output.picture=", "output.history=",
	}
	if r.field == "plain" {
		keys = append(keys, "problem.preset=dirichlet", "problem.initial=0.5", "problem.top=0.5", "problem.bottom=0.5",
			"problem.left=sin(2*pi*y)", "problem.right=sin(2*pi*y)")
	}
	if r.depth > 0 {
		keys = append(keys, "halo.depth="+strconv.Itoa(r.depth))
	}
	if r.transport != "" {
		keys = append(keys, "halo.transport="+r.transport)
	}
	args := []string{"-n", strconv.Itoa(r.ranks)}
	for _, k := range keys {
		args = append(args, "--set", k)
	}
	if out, err := exec.Command(b.launcher, args...).CombinedOutput(); err != nil {
		return rep, fmt.Errorf("%s %s: %w\n%s", b.launcher, strings.Join(args, " "), err, out)
	}
	text, err := os.ReadFile(filepath.Join(b.out, "report.json"))
	if err != nil {
		return rep, err
	}
	if err := json.Unmarshal(text, &rep); err != nil {
		return rep, err
	}
	if rep.Sweeps != r.sweeps {
		return rep, fmt.Errorf("%d sweeps, not %d", rep.Sweeps, r.sweeps)
	}
	return rep, nil
}
