package roster

import (
	"encoding/json"
	"fmt"

	"jacobi/internal/base/shm"
)

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
