package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// nodeStay is how long the last values of a run stay on a Node, so that they are scraped.
const nodeStay = time.Minute

// Node holds what the ranks on one node have told last, of all runs that have ranks there. It is a
// prometheus.Collector. Its metrics are those of a Run, but with the label run, since ranks of several runs may have
// the same number.
type Node struct {
	mu   sync.Mutex
	runs map[string]*Run // by id
}

// NewNode returns a Node without runs.
func NewNode() *Node { return &Node{runs: map[string]*Run{}} }

// Begin adds a run, whose ranks on this node are about to start. Only events of these ranks belong to it.
func (n *Node) Begin(id string, i Info) *Run {
	r := NewRun()
	r.part = true
	r.Begin(i)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs[id] = r
	return r
}

// End tells that the ranks of a run have ended on this node. Their values stay for a minute, and change with events
// that are still on their way. Then gone is called.
func (n *Node) End(id string, r *Run, gone func()) {
	time.AfterFunc(nodeStay, func() {
		n.mu.Lock()
		if n.runs[id] == r { // else a later run has this id
			delete(n.runs, id)
		}
		n.mu.Unlock()
		gone()
	})
}

// Describe implements prometheus.Collector. The runs are not known beforehand, and so a Node describes nothing.
func (n *Node) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (n *Node) Collect(to chan<- prometheus.Metric) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, r := range n.runs {
		prometheus.WrapCollectorWith(prometheus.Labels{"run": label(id)}, r).Collect(to)
	}
}
