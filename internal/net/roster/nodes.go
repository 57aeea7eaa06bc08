package roster

import "strings"

// OneNode reports whether the scheduler's variables in environ, a list of "NAME=value" entries, say that all ranks are
// on one node. The ranks' server then need not listen to other machines.
func (o Origin) OneNode(environ []string) bool {
	if o.Size > 0 && o.LocalSize == o.Size {
		return true
	}
	env := variables(environ)
	if env["SLURM_HET_SIZE"] != "" { // Slurm's variables describe only one component of the job
		return false
	}
	var nodes, tasks []string // variables: number of nodes, and ranks on each node
	switch o.By {
	case slurm, "pmi": // srun speaks PMI, too
		nodes = []string{"SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"}
		tasks = []string{"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}
	case "flux":
		nodes = []string{"FLUX_JOB_NNODES"}
	}
	if _, n, ok := first(env, nodes); ok {
		return n == "1"
	}
	_, list, ok := first(env, tasks)
	return ok && list != "" && !strings.ContainsAny(list, ",(")
}
