// Package roster knows the ranks of a run: how a rank learns its number, how all ranks meet over NATS, and how they
// communicate during the run (aborts, signs of life, barriers, small gathers).
package roster

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"jacobi/internal/base/shm"
)

// Identity is the place of a rank in its run.
type Identity struct {
	RunID     string `json:"run_id"`
	Rank      int    `json:"rank"` // 0 <= Rank < Size
	Size      int    `json:"size"`
	LocalRank int    `json:"local_rank"` // 0 <= LocalRank < LocalSize: among the ranks of its node; -1: Join sets it
	LocalSize int    `json:"local_size"` // 0: Join sets it
}

// The variables that carry an Identity from the launcher to a rank.
const (
	EnvRank      = "JACOBI_RANK"
	EnvSize      = "JACOBI_SIZE"
	EnvLocalRank = "JACOBI_LOCAL_RANK"
	EnvLocalSize = "JACOBI_LOCAL_SIZE"
	EnvRunID     = "JACOBI_RUN_ID"
)

// EnvLaunchedBy names the program that started a rank, where the environment fits several.
const EnvLaunchedBy = "JACOBI_LAUNCHED_BY"

// Variables returns the names of the variables from which a rank learns its Identity.
func Variables() []string {
	return []string{EnvRank, EnvSize, EnvLocalRank, EnvLocalSize, EnvRunID, EnvLaunchedBy}
}

// soloRunID is the run id of a rank that was started alone.
const soloRunID = "solo"

var runIDs = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// FromEnv reads the Identity that the launcher set in environ, a list of "NAME=value" entries. Either all five
// variables are set or none is; EnvRunID alone may be set for a scheduler's rank. With none, ok is false and the
// Identity is that of a run of one rank.
func FromEnv(environ []string) (id Identity, ok bool, err error) {
	values := variables(environ)
	var set, missing []string
	for _, name := range []string{EnvRank, EnvSize, EnvLocalRank, EnvLocalSize, EnvRunID} {
		if _, there := values[name]; there {
			set = append(set, name)
		} else {
			missing = append(missing, name)
		}
	}
	if len(set) == 0 || len(set) == 1 && set[0] == EnvRunID {
		return soloIdentity(), false, nil
	}
	if len(missing) > 0 {
		return Identity{}, false, fmt.Errorf("%s is set but %s is not: all are needed, or none",
			strings.Join(set, ", "), strings.Join(missing, ", "))
	}
	number := func(name string, low, high int, why string) int {
		return numberOf(name, values[name], low, high, why, &err)
	}
	id.RunID = values[EnvRunID]
	id.Size = number(EnvSize, 1, maxRanks, "")
	id.Rank = number(EnvRank, 0, id.Size-1, ", below "+EnvSize)
	id.LocalSize = number(EnvLocalSize, 1, id.Size, ", at most "+EnvSize)
	id.LocalRank = number(EnvLocalRank, 0, id.LocalSize-1, ", below "+EnvLocalSize)
	if err != nil {
		return Identity{}, false, err
	}
	if !runIDs.MatchString(id.RunID) {
		return Identity{}, false, badRunID(id.RunID)
	}
	return id, true, nil
}

func badRunID(id string) error {
	return fmt.Errorf("%s=%q: allowed are 1 to 64 letters, digits, - and _", EnvRunID, id)
}

// Environ returns the entries from which FromEnv reads id.
func (id Identity) Environ() []string {
	return []string{
		EnvRunID + "=" + id.RunID,
		EnvRank + "=" + strconv.Itoa(id.Rank),
		EnvSize + "=" + strconv.Itoa(id.Size),
		EnvLocalRank + "=" + strconv.Itoa(id.LocalRank),
		EnvLocalSize + "=" + strconv.Itoa(id.LocalSize),
	}
}

func (id Identity) check() error {
	if !runIDs.MatchString(id.RunID) {
		return fmt.Errorf("run id %q: allowed are 1 to 64 letters, digits, - and _", id.RunID)
	}
	if id.Size < 1 || id.Rank < 0 || id.Rank >= id.Size {
		return fmt.Errorf("rank %d of %d: there is no such rank", id.Rank, id.Size)
	}
	return nil
}

// The subjects of a run all begin with prefix(runID) + ".".
func prefix(runID string) string          { return "jacobi." + runID }
func joinSubject(runID string) string     { return prefix(runID) + ".join" }
func rosterSubject(runID string) string   { return prefix(runID) + ".roster" }
func abortSubject(runID string) string    { return prefix(runID) + ".abort" }
func stopSubject(runID string) string     { return prefix(runID) + ".stop" }
func postSubject(id string, r int) string { return prefix(id) + ".post." + strconv.Itoa(r) }
func beatSubject(id, rank string) string  { return prefix(id) + ".beat." + rank }
func eventSubject(id, rank string) string { return prefix(id) + ".event." + rank }
func verdictSubject(id, who string) string {
	return joinSubject(id) + "." + who
}

// agreeLocal sets LocalRank and LocalSize of the members without them. It gives the free local ranks of a node to
// them in the order of ranks. Two ranks are on one node only if they share memory; the name of the host does not count.
// A rank whose node is not known is alone.
func agreeLocal(members []Member) {
	nodes := map[shm.Node][]*Member{}
	for i := range members {
		m := &members[i]
		if !InOneMemory(*m, *m) {
			m.LocalRank, m.LocalSize = max(0, m.LocalRank), max(1, m.LocalRank+1, m.LocalSize)
			continue
		}
		nodes[m.Node] = append(nodes[m.Node], m)
	}
	for _, here := range nodes {
		taken := map[int]bool{}
		for _, m := range here {
			taken[m.LocalRank] = true
		}
		next, size := 0, len(here)
		for _, m := range here {
			if m.LocalRank < 0 {
				for taken[next] {
					next++
				}
				m.LocalRank, taken[next] = next, true
			}
			size = max(size, m.LocalRank+1, m.LocalSize)
		}
		for _, m := range here {
			if m.LocalSize == 0 {
				m.LocalSize = size
			}
		}
	}
}

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

// SharesMemory reports whether a and b can map each other's memory, and why or why not. They can if kernel, PID
// namespace and user are known and the same; the names of their hosts do not count. It is the answer for all that rests
// on shared memory: links, the reduction, CUDA IPC and the agreement on local ranks. Opening a segment may still fail.
//
// The answer and its words do not depend on the order of a and b, so both ranks of a pair come to the same result.
func SharesMemory(a, b Member) (bool, string) {
	if InOneMemory(a, b) {
		return true, fmt.Sprintf("same node (%v)", a.Node)
	}
	if a.Rank > b.Rank {
		a, b = b, a
	}
	hosts := fmt.Sprintf("rank %d on %s, rank %d on %s", a.Rank, a.Host, b.Rank, b.Host)
	switch x, y := a.Node, b.Node; {
	case x.Boot == "" || y.Boot == "":
		return false, "unknown node: " + hosts
	case x.Boot != y.Boot:
		return false, "different nodes: " + hosts
	case x.PIDNamespace != y.PIDNamespace:
		return false, fmt.Sprintf("same node, but PID namespaces %s and %s", x.PIDNamespace, y.PIDNamespace)
	default:
		return false, fmt.Sprintf("same node, but users %d and %d", x.User, y.User)
	}
}

// InOneMemory is the answer of SharesMemory without the words, which take time where there are many ranks.
func InOneMemory(a, b Member) bool { return a.Node.Boot != "" && a.Node == b.Node }

// SharesDevices reports whether a and b count the same cores and GPUs. That takes the same name of the host, too:
// containers that share a PID namespace have names of their own, and may have been given other cores and GPUs. Ranks
// whose nodes are not known share devices if their hosts have one name.
func SharesDevices(a, b Member) bool { return a.Host == b.Host && a.Node == b.Node }

// NodeID returns a text that is equal for ranks of one node, for reports; "" if the node is not known.
func (m Member) NodeID() string {
	if m.Node == (shm.Node{}) {
		return ""
	}
	b, err := json.Marshal(m.Node)
	if err != nil { // strings and a number always have JSON
		return ""
	}
	return string(b)
}
