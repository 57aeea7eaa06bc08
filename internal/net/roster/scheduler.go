package roster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ByLauncher and Alone are the values of Origin.By besides the names of schedulers.
const (
	ByLauncher = "launcher"
	Alone      = "alone"
)

// Origin names the program that started a rank, and the rank's Identity as that program gave it.
type Origin struct {
	By string // ByLauncher, Alone or the name of a scheduler
	// Identity, as far as it is known. Size and LocalSize are 0 and LocalRank is -1 if the scheduler does not set them.
	// RunID is empty unless EnvRunID is set.
	Identity
	// Job names the scheduler's job: it is the same on all ranks and differs from one start to the next. It is "" if
	// the scheduler does not set it.
	Job string
}

// scheduler describes a program that starts ranks by the variables that it sets. Of each list the first one that is set
// counts.
type scheduler struct {
	name                             string
	rank, size, localRank, localSize []string
	job                              []string // joined, they name a job
}

const slurm = "slurm"

// schedulers are asked in this order. Slurm comes last: its variables are also in the environment of a batch script
// that starts ranks in another way.
func schedulers() []scheduler {
	return []scheduler{
		{"openmpi", []string{"OMPI_COMM_WORLD_RANK"}, []string{"OMPI_COMM_WORLD_SIZE"},
			[]string{"OMPI_COMM_WORLD_LOCAL_RANK"}, []string{"OMPI_COMM_WORLD_LOCAL_SIZE"},
			[]string{"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
		{"pals", []string{"PALS_RANKID"}, []string{"PMI_SIZE"}, []string{"PALS_LOCAL_RANKID"},
			[]string{"PMI_LOCAL_SIZE"}, []string{"PALS_APID"}},
		{"flux", []string{"FLUX_TASK_RANK"}, []string{"FLUX_JOB_SIZE"}, []string{"FLUX_TASK_LOCAL_ID"}, nil,
			[]string{"FLUX_JOB_ID"}},
		{"pmi", []string{"PMI_RANK"}, []string{"PMI_SIZE"}, []string{"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
			[]string{"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
			[]string{"SLURM_JOB_ID", "SLURM_STEP_ID"}},
		{"torchrun", []string{"RANK"}, []string{"WORLD_SIZE"}, []string{"LOCAL_RANK"}, []string{"LOCAL_WORLD_SIZE"},
			[]string{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT"}},
		{"kubernetes", []string{"JOB_COMPLETION_INDEX"}, nil, nil, nil, nil},
		{slurm, []string{"SLURM_PROCID"}, []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, []string{"SLURM_LOCALID"},
			nil,
			[]string{"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}},
	}
}

// Origins returns the values that Identify takes for by, besides "".
func Origins() []string {
	names := []string{ByLauncher, Alone}
	for _, s := range schedulers() {
		names = append(names, s.name)
	}
	return names
}

// Identify returns the Identity of a rank and the program that started it, from environ, a list of "NAME=value"
// entries. by, one of Origins, chooses the program. With "" the launcher's variables count first, then those of the
// schedulers; it is an error if several schedulers contradict each other. Without any the rank is a run of its own.
func Identify(environ []string, by string) (Origin, error) {
	if by != "" && !slices.Contains(Origins(), by) {
		return Origin{}, fmt.Errorf("--launched-by %q: allowed are %s", by, strings.Join(Origins(), ", "))
	}
	env := variables(environ)
	id, given, err := FromEnv(environ)
	switch {
	case by == Alone:
		return Origin{By: Alone, Identity: soloIdentity()}, nil
	case by == ByLauncher && err == nil && !given:
		return Origin{}, fmt.Errorf("--launched-by %s: %s is not set", by, EnvRank)
	case by == ByLauncher, by == "" && (err != nil || given):
		return Origin{By: ByLauncher, Identity: id}, err
	}
	var found []Origin
	for _, s := range schedulers() {
		if by == "" && !s.here(env, len(found) > 0) || by != "" && by != s.name {
			continue
		}
		o, err := s.origin(env)
		if err != nil {
			return Origin{}, err
		}
		found = append(found, o)
	}
	if len(found) == 0 {
		return Origin{By: Alone, Identity: soloIdentity()}, nil
	}
	for _, o := range found[1:] {
		if o.Rank != found[0].Rank || o.Size != found[0].Size {
			return Origin{}, fmt.Errorf("the environment says that this is %v and that it is %v; --launched-by %s or "+
				"%s chooses", found[0], o, found[0].By, o.By)
		}
	}
	o := found[0]
	if o.RunID = env[EnvRunID]; o.RunID != "" && !runIDs.MatchString(o.RunID) {
		return Origin{}, badRunID(o.RunID)
	}
	return o, nil
}

// String returns the origin as in "rank 3 of 8 of openmpi".
func (o Origin) String() string {
	if o.Size == 0 {
		return fmt.Sprintf("rank %d of %s", o.Rank, o.By)
	}
	return fmt.Sprintf("rank %d of %d of %s", o.Rank, o.Size, o.By)
}

func soloIdentity() Identity { return Identity{RunID: soloRunID, Size: 1, LocalSize: 1} }

func variables(environ []string) map[string]string {
	values := map[string]string{}
	for _, entry := range environ {
		if name, value, found := strings.Cut(entry, "="); found {
			values[name] = value
		}
	}
	return values
}

// first returns the name and the value of the first variable in names that is set.
func first(env map[string]string, names []string) (name, value string, ok bool) {
	for _, name := range names {
		if value, ok := env[name]; ok {
			return name, value, true
		}
	}
	return "", "", false
}

// here reports whether env is that of a rank that s started. others says that another scheduler has been found.
func (s scheduler) here(env map[string]string, others bool) bool {
	_, rank, ok := first(env, s.rank)
	if !ok {
		return false
	}
	switch s.name {
	case "torchrun": // RANK alone may have another meaning
		_, _, ok = first(env, s.size)
	case slurm:
		// srun sets the variables of a step. In a batch script they are missing, and SLURM_PROCID is 0.
		_, _, step := first(env, []string{"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_NUM_TASKS",
			"SLURM_STEP_TASKS_PER_NODE"})
		ok = !others && (step || rank != "0")
	}
	return ok
}

// origin reads the variables that s has set for this rank.
func (s scheduler) origin(env map[string]string) (o Origin, err error) {
	o = Origin{By: s.name, Identity: Identity{LocalRank: -1}, Job: s.jobName(env)}
	number := func(names []string, low, high, missing int, why string) int {
		name, value, ok := first(env, names)
		if !ok {
			return missing
		}
		return numberOf(name, value, low, high, why, &err)
	}
	if _, _, ok := first(env, s.rank); !ok {
		return o, fmt.Errorf("--launched-by %s: %s is not set", s.name, s.rank[0])
	}
	if o.Size = number(s.size, 1, maxRanks, 0, ""); o.Size == 0 && len(s.size) > 0 && s.name != "pals" && err == nil {
		return o, fmt.Errorf("%s is set but %s is not", s.rank[0], strings.Join(s.size, " or "))
	}
	highest, why := maxRanks-1, ""
	if o.Size > 0 {
		highest, why = o.Size-1, ", below the number of ranks"
	}
	o.Rank = number(s.rank, 0, highest, 0, why)
	o.LocalSize = number(s.localSize, 1, maxRanks, 0, "")
	if s.name == slurm && err == nil {
		o.LocalSize, err = slurmLocalSize(env)
	}
	highest, why = maxRanks-1, ""
	if o.LocalSize > 0 {
		highest, why = o.LocalSize-1, ", below the number of ranks on this node"
	}
	o.LocalRank = number(s.localRank, 0, highest, -1, why)
	if o.LocalRank < 0 {
		o.LocalSize = 0 // the size alone is of no use
	}
	return o, err
}

// maxRanks is the largest number of ranks that variables may name.
const maxRanks = 1 << 20

// numberOf returns the value of a variable. It sets err, unless that is set, if the value is not allowed.
func numberOf(name, value string, low, high int, why string, err *error) int {
	n, bad := strconv.Atoi(value)
	if *err == nil && (bad != nil || n < low || n > high) {
		*err = fmt.Errorf("%s=%q: allowed is an integer from %d to %d%s", name, value, low, high, why)
	}
	return n
}

// jobName joins the variables that name a job into a string that can be part of a file name and of a run id.
func (s scheduler) jobName(env map[string]string) string {
	var parts []string
	for _, name := range s.job {
		if value := env[name]; value != "" && value != "none" { // torchrun's name for a run without one
			parts = append(parts, value)
		}
	}
	if parts == nil {
		return ""
	}
	job := s.name + "-" + strings.Join(parts, "-")
	if runIDs.MatchString(job) {
		return job
	}
	sum := sha256.Sum256([]byte(job))
	return s.name + "-" + hex.EncodeToString(sum[:16])
}

// slurmLocalSize returns the number of ranks on this node from SLURM_STEP_TASKS_PER_NODE, "4(x2),3" for nodes of 4, 4
// and 3 tasks; 0 if Slurm has not set it.
func slurmLocalSize(env map[string]string) (int, error) {
	name, list, ok := first(env, []string{"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"})
	node, err := strconv.Atoi(env["SLURM_NODEID"])
	if !ok || err != nil {
		return 0, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		tasks, times, repeated := strings.Cut(part, "(x")
		n, err := strconv.Atoi(tasks)
		count := 1
		if repeated && err == nil {
			count, err = strconv.Atoi(strings.TrimSuffix(times, ")"))
		}
		if err != nil || n < 1 || count < 1 {
			return 0, fmt.Errorf("%s=%q: must be tasks for each node, as in 4(x2),3", name, list)
		}
		if node -= count; node < 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s=%q has no entry for node SLURM_NODEID=%q", name, list, env["SLURM_NODEID"])
}
