package roster

import (
	"strings"
	"testing"
)

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
