package roster

import (
	"strings"
	"testing"
)

func TestFromEnvReadsBackEnviron(t *testing.T) {
	want := Identity{RunID: "run-7", Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4}
	got, ok, err := FromEnv(append([]string{"PATH=/bin", "X"}, want.Environ()...))
	if err != nil || !ok || got != want {
		t.Errorf("got %+v, %v, %v; want %+v", got, ok, err, want)
	}
}

func TestFromEnvAlone(t *testing.T) {
	got, ok, err := FromEnv([]string{"PATH=/bin"})
	want := Identity{RunID: "solo", Size: 1, LocalSize: 1}
	if err != nil || ok || got != want {
		t.Errorf("got %+v, %v, %v; want %+v", got, ok, err, want)
	}
}

func TestFromEnvRefuses(t *testing.T) {
	with := func(name, value string) []string {
		env := Identity{RunID: "r", Rank: 1, Size: 4, LocalRank: 1, LocalSize: 2}.Environ()
		for i, e := range env {
			if strings.HasPrefix(e, name+"=") {
				env[i] = name + "=" + value
			}
		}
		return env
	}
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"JACOBI_RANK=0", "JACOBI_SIZE=1"},
			"JACOBI_RANK, JACOBI_SIZE is set but JACOBI_LOCAL_RANK, JACOBI_LOCAL_SIZE, JACOBI_RUN_ID is not"},
		{with(EnvRank, "4"), `JACOBI_RANK="4": allowed is an integer from 0 to 3, below JACOBI_SIZE`},
		{with(EnvRank, ""), `JACOBI_RANK="": allowed is an integer from 0 to 3`},
		{with(EnvSize, "many"), `JACOBI_SIZE="many": allowed is an integer from 1 to`},
		{with(EnvSize, "0"), `JACOBI_SIZE="0": allowed`},
		{with(EnvLocalRank, "2"), `JACOBI_LOCAL_RANK="2": allowed is an integer from 0 to 1, below JACOBI_LOCAL_SIZE`},
		{with(EnvLocalSize, "5"), `JACOBI_LOCAL_SIZE="5": allowed is an integer from 1 to 4, at most JACOBI_SIZE`},
		{with(EnvRunID, "a.b"), `JACOBI_RUN_ID="a.b": allowed are 1 to 64 letters`},
	} {
		_, _, err := FromEnv(c.env)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.env, err, c.want)
		}
	}
}

func TestFormatRanks(t *testing.T) {
	for want, ranks := range map[string][]int{
		"no rank": nil, "rank 4": {4}, "ranks 1, 2": {2, 1}, "ranks 0-4, 6": {0, 6, 1, 2, 3, 4}, "ranks 5, 7": {7, 5},
	} {
		if got := FormatRanks(ranks); got != want {
			t.Errorf("%v: %q, want %q", ranks, got, want)
		}
	}
}
