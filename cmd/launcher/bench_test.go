package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/run/launch"
)

func TestBenchRefusals(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--ranks 1,,2", `--ranks "1,,2": "": must be integers of at least 1, with commas between them`},
		{"--ranks 1,2,2", `--ranks "1,2,2": 2 stands there twice`},
		{"--sizes 2k", `--sizes "2k": "2k": must be integers of at least 1, with commas between them`},
		{"--sizes 64,64", `--sizes "64,64": 64 stands there twice`},
		{"--sizes 64,2 --ranks 1", "bench --ranks 1 --sizes 2 (2 x 2): grid.nx 2: 3 to 2147483647 are " +
			"allowed\ngrid.ny 2: 3 to 2147483647 are allowed"},
		{"--sizes 64 --ranks 9,1", "bench --ranks 9 --sizes 64 (64 x 64): run.ranks 9: every rank has to work " +
			"here, and 1 of 9 ranks stays idle: grid.ny 64 has rows for 8"},
		{"--ranks 2 --set halo.depth=64", "bench --ranks 2 (64 x 128): run.ranks 2: every rank has to work " +
			"here, and 1 of 2 ranks stays idle: with halo.depth 64, grid.ny 128 has rows for 1"},
		{"--weak --ranks 100000000", "bench --ranks 100000000 --weak (64 x 12800000000): grid.ny 12800000000: 3 to " +
			"2147483647 are allowed"},
		{"--weak --ranks 9223372036854775807", "bench --ranks 9223372036854775807 --weak (64 x 9223372036854775807): " +
			"grid.ny 9223372036854775807: 3 to 2147483647 are allowed"},
		{"--ranks 3 --host a:2", "bench --ranks 3 (64 x 128): -np 3 ranks need 3 slots, and there are 2: a 2"},
		{"-np 2 --ranks 1", `-np 2 and --ranks "1": only one of them is allowed`},
		{"--repeat 0", "--repeat 0: must be at least 1"},
		{"--repeat few", `--repeat "few": must be an integer`},
		{"--name a/b", `--name "a/b": must be a plain file name; output.dir says where`},
		{"--name=", `--name "": must be a plain file name; output.dir says where`},
	} {
		_, err := command(t, append(append([]string{"bench", "--set", "device.backend=cpu"}, small...),
			strings.Fields(c.args)...)...)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v\nwant %s", c.args, err, c.want)
		}
		if entries, err := os.ReadDir("."); len(entries) != 0 || err != nil {
			t.Errorf("%s: left behind: %v, error %v", c.args, entries, err)
		}
	}
	_, err := command(t, "bench", "--ranks", "2", "--sizes", "64,2000000", "--set", "device.backend=cpu")
	if err == nil || !strings.HasPrefix(err.Error(),
		"bench --ranks 2 --sizes 2000000 (2000000 x 2000000): grid.nx 2000000, grid.ny 2000000: memory: ") {
		t.Errorf("a size beyond the memory: %v", err)
	}
}

// At the time limit the context's cause is the exit code.
func TestTellEnd(t *testing.T) {
	told, cancel := tellEnd(t.Context(), time.Nanosecond)
	defer cancel()
	<-told.Done()
	if e, ok := errors.AsType[launch.ExitError](context.Cause(told)); !ok || e.Code != launch.ExitTimeout {
		t.Errorf("cause %v", context.Cause(told))
	}
}

func TestBenchmarkHasItsOwnConfiguration(t *testing.T) {
	o := benchOptions{weak: true}
	cfg, err := configs.Load(configs.Options{Set: []string{"grid.nx=64", "grid.ny=128", "checkpoint.every=10m",
		"checkpoint.dir=there", "checkpoint.keep=5"}})
	if err != nil {
		t.Fatal(err)
	}
	c := o.benchConfig(cfg, 0, 3)
	if c.Checkpoint != configs.Default().Checkpoint {
		t.Errorf("checkpoints are written: %+v", c.Checkpoint)
	}
	if c.Grid.NX != 64 || c.Grid.NY != 384 || c.Run.Ranks != 3 || c.Solver.Tolerance != 0 ||
		c.Solver.MaxIterations != 1000 ||
		c.Output.Dir != "out" || c.Output.Field+c.Output.Picture+c.Output.History+c.Output.Report != "" {
		t.Errorf("%+v", c)
	}
}

func TestDoublings(t *testing.T) {
	for n, want := range map[int][]int{1: {1}, 2: {1, 2}, 5: {1, 2, 4, 5}, 8: {1, 2, 4, 8}} {
		if got := doublings(n); !slices.Equal(got, want) {
			t.Errorf("up to %d: %v, want %v", n, got, want)
		}
	}
}
