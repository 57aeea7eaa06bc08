package roster

import (
	"strings"
	"testing"

	"jacobi/internal/base/shm"
)

func TestFromEnvReadsBackEnviron(t *testing.T) {
	want := Identity{RunID: "run-7", Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4}
	got, ok, err := FromEnv(append([]string{"PATH=/bin", "X"}, want.Environ()...))
	if err != nil || !ok || got != want {
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

func TestOneNode(t *testing.T) {
	const ranks = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=3"
	const mpich = "PMI_RANK=0 PMI_SIZE=3"
	const flux = "FLUX_TASK_RANK=0 FLUX_JOB_SIZE=3 FLUX_TASK_LOCAL_ID=0"
	for env, want := range map[string]bool{
		ranks: false,
		ranks + " SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=3": true,
		ranks + " SLURM_STEP_TASKS_PER_NODE=3":                                true,
		ranks + " SLURM_STEP_TASKS_PER_NODE=2,1":                              false,
		ranks + " SLURM_STEP_TASKS_PER_NODE=1(x3)":                            false,
		ranks + " SLURM_LOCALID=0 SLURM_NNODES=1":                             true,
		ranks + " SLURM_STEP_NUM_NODES=2 SLURM_NNODES=4":                      false,
		ranks + " SLURM_STEP_NUM_NODES=1 SLURM_NNODES=4":                      true,
		ranks + " SLURM_NNODES=1 SLURM_HET_SIZE=2":                            false,
		mpich: false,
		mpich + " MPI_LOCALRANKID=0 MPI_LOCALNRANKS=3": true,
		mpich + " MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2": false,
		mpich + " SLURM_NNODES=1":                      true,
		flux:                                           false,
		flux + " FLUX_JOB_NNODES=1":                    true,
		flux + " FLUX_JOB_NNODES=3":                    false,
		"JOB_COMPLETION_INDEX=0 SLURM_NNODES=1":        false,
	} {
		o, err := Identify(strings.Fields(env), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := o.OneNode(strings.Fields(env)); got != want {
			t.Errorf("%s: %v, want %v", env, got, want)
		}
	}
}

func TestSharing(t *testing.T) {
	node := shm.Node{Boot: "k1", PIDNamespace: "42", User: 7}
	for name, c := range map[string]struct {
		change  func(*Member)
		memory  bool
		devices bool
		why     string
	}{
		"same": {func(*Member) {}, true, true, "same node (boot id k1, PID namespace 42, user 7)"},
		"another host name": {func(m *Member) { m.Host = "two" }, true, false,
			"same node (boot id k1, PID namespace 42, user 7)"},
		"boot": {func(m *Member) { m.Node.Boot = "b" }, false, false,
			"different nodes: rank 1 on one, rank 2 on one"},
		"namespace": {func(m *Member) { m.Node.PIDNamespace = "7" }, false, false,
			"same node, but PID namespaces 42 and 7"},
		"user": {func(m *Member) { m.Node.User = -7 }, false, false, "same node, but users 7 and -7"},
		"unknown": {func(m *Member) { m.Node, m.Host = shm.Node{}, "two" }, false, false,
			"unknown node: rank 1 on one, rank 2 on two"},
	} {
		a := Member{Identity: Identity{Rank: 1}, Host: "one", Node: node}
		b := Member{Identity: Identity{Rank: 2}, Host: "one", Node: node}
		c.change(&b)
		for _, pair := range [][2]Member{{a, b}, {b, a}} {
			if ok, why := SharesMemory(pair[0], pair[1]); ok != c.memory || why != c.why {
				t.Errorf("%s: memory %v, %s; want %v, %s", name, ok, why, c.memory, c.why)
			}
			if ok := SharesDevices(pair[0], pair[1]); ok != c.devices {
				t.Errorf("%s: devices %v, want %v", name, ok, c.devices)
			}
		}
		if got := a.NodeID() == b.NodeID(); got != (a.Node == b.Node) {
			t.Errorf("%s: the same id of the node %v", name, got)
		}
	}
	unknown := Member{Host: "one"}
	ok, _ := SharesMemory(unknown, unknown)
	if ok || !SharesDevices(unknown, unknown) || unknown.NodeID() != "" {
		t.Errorf("two unknown nodes: memory %v, devices %v, id %q", ok,
			SharesDevices(unknown, unknown), unknown.NodeID())
	}
}
