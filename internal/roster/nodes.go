package roster

import "strings"

// OneNode says whether the scheduler of a rank tells, in an environment of "NAME=value" entries, that all ranks are on
// one node. A server that they meet at need not listen to other machines then.
func (o Origin) OneNode(environ []string) bool {
	if o.Size > 0 && o.LocalSize == o.Size {
		return true
	}
	env := variables(environ)
	if env["SLURM_HET_SIZE"] != "" { // what Slurm tells is of one component of the job
		return false
	}
	var nodes, tasks []string // how many nodes there are, and how many ranks each has
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
