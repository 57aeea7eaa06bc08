package roster

import (
	"strings"
	"testing"

	"jacobi/internal/base/shm"
)

func TestIdentify(t *testing.T) {
	id := func(rank, size, localRank, localSize int) Identity {
		return Identity{Rank: rank, Size: size, LocalRank: localRank, LocalSize: localSize}
	}
	const srun = "SLURM_JOB_ID=77 SLURM_STEP_ID=2 SLURM_PROCID=5 SLURM_NTASKS=16 SLURM_STEP_NUM_TASKS=11 " +
		"SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=4(x2),3"
	for _, c := range []struct {
		name, env, by string
		want          Origin
	}{
		{"nobody", "PATH=/bin RANK=3", "", Origin{By: "alone",
			Identity: Identity{RunID: "solo", Size: 1, LocalSize: 1}}},
		{"launcher", "JACOBI_RANK=1 JACOBI_SIZE=4 JACOBI_LOCAL_RANK=1 JACOBI_LOCAL_SIZE=2 JACOBI_RUN_ID=r " +
			"SLURM_PROCID=0 OMPI_COMM_WORLD_RANK=7", "",
			Origin{By: "launcher", Identity: Identity{"r", 1, 4, 1, 2}}},
		{"Open MPI 4", "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 " +
			"OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_MCA_ess_base_jobid=1190068225", "",
			Origin{"openmpi", id(3, 8, 1, 2), "openmpi-1190068225"}},
		{"Open MPI 5", "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 " +
			"OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=prterun-node1-1234@1", "",
			Origin{"openmpi", id(3, 8, 1, 2), "openmpi-c54fdd213db368546c240888e54151da"}},
		{"MPICH", "PMI_RANK=3 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", "", Origin{"pmi", id(3, 8, 1, 2), ""}},
		{"PMI without local ranks", "PMI_RANK=3 PMI_SIZE=8 SLURM_JOB_ID=5", "",
			Origin{"pmi", id(3, 8, -1, 0), "pmi-5"}},
		{"torchrun", "RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none MASTER_PORT=29400 " +
			"TORCHELASTIC_RESTART_COUNT=0", "",
			Origin{"torchrun", id(3, 8, 1, 2), "torchrun-0-29400"}},
		{"Flux", "FLUX_TASK_RANK=3 FLUX_JOB_SIZE=8 FLUX_TASK_LOCAL_ID=1 FLUX_JOB_ID=123", "",
			Origin{"flux", id(3, 8, 1, 0), "flux-123"}},
		{"PALS", "PALS_RANKID=3 PALS_LOCAL_RANKID=1 PMI_RANK=3 PMI_SIZE=8 PMI_LOCAL_SIZE=4 PALS_APID=0f-e", "",
			Origin{"pals", id(3, 8, 1, 4), "pals-0f-e"}},
		{"PALS without PMI", "PALS_RANKID=3 PALS_LOCAL_RANKID=1", "", Origin{"pals", id(3, 0, 1, 0), ""}},
		{"Kubernetes", "JOB_COMPLETION_INDEX=3", "", Origin{"kubernetes", id(3, 0, -1, 0), ""}},
		{"srun", srun, "", Origin{"slurm", id(5, 11, 1, 4), "slurm-77-2"}},
		{"srun, third node", strings.Replace(srun, "NODEID=1", "NODEID=2", 1), "",
			Origin{"slurm", id(5, 11, 1, 3), "slurm-77-2"}},
		{"srun that says little", "SLURM_PROCID=5 SLURM_NTASKS=8", "", Origin{"slurm", id(5, 8, -1, 0), ""}},
		{"a batch script", "SLURM_JOB_ID=77 SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_LOCALID=0 SLURM_NODEID=0 " +
			"SLURM_TASKS_PER_NODE=4(x2)", "",
			Origin{By: "alone", Identity: Identity{RunID: "solo", Size: 1, LocalSize: 1}}},
		{"mpirun in a batch script", "SLURM_PROCID=0 SLURM_NTASKS=8 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4", "",
			Origin{"openmpi", id(3, 4, -1, 0), ""}},
		{"two that agree", "RANK=3 WORLD_SIZE=8 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8", "",
			Origin{"openmpi", id(3, 8, -1, 0), ""}},
		{"one of two that is chosen", "RANK=0 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8", "torchrun",
			Origin{"torchrun", id(0, 2, -1, 0), ""}},
		{"Slurm, chosen", srun + " PMI_RANK=5 PMI_SIZE=11", "slurm", Origin{"slurm", id(5, 11, 1, 4), "slurm-77-2"}},
		{"alone, chosen", srun, "alone", Origin{By: "alone", Identity: Identity{RunID: "solo", Size: 1, LocalSize: 1}}},
		{"a run id of the user's", srun + " JACOBI_RUN_ID=mine", "",
			Origin{"slurm", Identity{"mine", 5, 11, 1, 4}, "slurm-77-2"}},
	} {
		got, err := Identify(strings.Fields(c.env), c.by)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v\nwant %+v", c.name, got, err, c.want)
		}
	}
}

func TestIdentifyRefuses(t *testing.T) {
	for _, c := range []struct{ env, by, want string }{
		{"", "mpi", `--launched-by "mpi": allowed are launcher, alone, openmpi, pals, flux, pmi, torchrun, ` +
			`kubernetes, slurm`},
		{"", "launcher", "--launched-by launcher: JACOBI_RANK is not set"},
		{"", "openmpi", "--launched-by openmpi: OMPI_COMM_WORLD_RANK is not set"},
		{"JACOBI_RANK=1", "", "JACOBI_RANK is set but JACOBI_SIZE, JACOBI_LOCAL_RANK, JACOBI_LOCAL_SIZE, " +
			"JACOBI_RUN_ID is not: all are needed, or none"},
		{"RANK=0 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8", "",
			"the environment says that this is rank 3 of 8 of openmpi and that it is rank 0 of 2 of torchrun; " +
				"--launched-by openmpi or torchrun chooses"},
		{"OMPI_COMM_WORLD_RANK=3", "", "OMPI_COMM_WORLD_RANK is set but OMPI_COMM_WORLD_SIZE is not"},
		{"PMI_RANK=8 PMI_SIZE=8", "", `PMI_RANK="8": allowed is an integer from 0 to 7, below the number of ranks`},
		{"PMI_RANK=x PMI_SIZE=8", "", `PMI_RANK="x": allowed is an integer from 0 to 7`},
		{"PMI_RANK=0 PMI_SIZE=many", "", `PMI_SIZE="many": allowed is an integer from 1 to`},
		{"PMI_RANK=1 PMI_SIZE=8 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=2", "",
			`MPI_LOCALRANKID="2": allowed is an integer from 0 to 1, below the number of ranks on this node`},
		{"JOB_COMPLETION_INDEX=-1", "", `JOB_COMPLETION_INDEX="-1": allowed is an integer from 0 to`},
		{"SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2(y3)", "",
			`SLURM_STEP_TASKS_PER_NODE="2(y3)": must be tasks for each node, as in 4(x2),3`},
		{"SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_NODEID=4 SLURM_STEP_TASKS_PER_NODE=1(x2)", "",
			`SLURM_STEP_TASKS_PER_NODE="1(x2)" has no entry for node SLURM_NODEID="4"`},
		{"PMI_RANK=1 PMI_SIZE=8 JACOBI_RUN_ID=a.b", "", `JACOBI_RUN_ID="a.b": allowed are 1 to 64 letters`},
	} {
		_, err := Identify(strings.Fields(c.env), c.by)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s, by %q: error %v\nwant %s", c.env, c.by, err, c.want)
		}
	}
}

func TestLocalRanksAreAgreedByNode(t *testing.T) {
	member := func(node string, rank, localRank, localSize int) Member {
		return Member{Identity: Identity{Rank: rank, LocalRank: localRank, LocalSize: localSize}, Host: "same",
			Node: shm.Node{Boot: node}}
	}
	ms := []Member{
		member("x", 0, -1, 0), member("y", 1, -1, 0), member("x", 2, -1, 0), // no local rank is known
		member("", 3, -1, 0), member("", 4, 2, 0), // no node is known
		member("z", 5, 1, 0), member("z", 6, -1, 0), member("z", 7, 4, 0), // some local ranks are known
		member("k", 8, 3, 9), // known, on a node of its own
	}
	agreeLocal(ms)
	for r, want := range [][2]int{{0, 2}, {0, 1}, {1, 2}, {0, 1}, {2, 3}, {1, 5}, {0, 5}, {4, 5}, {3, 9}} {
		if got := [2]int{ms[r].LocalRank, ms[r].LocalSize}; got != want {
			t.Errorf("rank %d: local rank and size %v, want %v", r, got, want)
		}
	}
}
