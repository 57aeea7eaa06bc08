package view

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"

	"jacobi/internal/net/roster"
)

// Board holds the newest state of each topic. Its methods may be called by several goroutines. Set does not wait for
// readers.
type Board struct {
	mu      sync.Mutex
	version uint64
	topics  map[string]topic
}

// topic is the message with the state of one topic, and the version of the board that it came with.
type topic struct {
	version uint64
	message []byte
}

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{topics: map[string]topic{}} }

// Set replaces the state of a topic. state must be a value of this package that JSON can hold.
func (b *Board) Set(name string, state any) {
	m := message(name, state)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version++
	b.topics[name] = topic{b.version, m}
}

// has reports whether the state of a topic has been set.
func (b *Board) has(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.topics[name].version > 0
}

// message returns the message with which a page gets the state of a topic.
func message(name string, state any) []byte {
	data, err := json.Marshal(struct {
		Topic string `json:"topic"`
		Data  any    `json:"data"`
	}{name, state})
	if err != nil {
		panic("view: " + name + ": " + err.Error()) // numbers that may be no number are roster.Numbers
	}
	return data
}

// since returns the messages of the topics that have changed after a version, in the order of their names, and the
// version of the board.
func (b *Board) since(version uint64) (messages [][]byte, now uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.topics)) {
		if t := b.topics[name]; t.version > version {
			messages = append(messages, t.message)
		}
	}
	return messages, b.version
}

// Point is the norm of an iteration, counted from 0.
type Point struct {
	Iteration int
	Norm      roster.Number
}

// MarshalJSON writes p as a pair. Rank 0 writes thousands of them for each second in which a page is open.
func (p Point) MarshalJSON() ([]byte, error) {
	b := append(strconv.AppendInt([]byte{'['}, int64(p.Iteration), 10), ',')
	if norm := finite(float64(p.Norm)); norm != nil {
		b = strconv.AppendFloat(b, float64(*norm), 'g', -1, 64)
	} else {
		b = append(b, "null"...)
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote; null as a norm becomes 0, which no axis shows.
func (p *Point) UnmarshalJSON(b []byte) error {
	var pair [2]float64
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	*p = Point{int(pair[0]), roster.Number(pair[1])}
	return nil
}

// maxPoints bounds the points of a Track; it is even.
const maxPoints = 2048

// Track keeps the norms of a run: all of them, or each second, fourth and so on, in bounded memory. The newest one is
// always among them. A Track is used by one goroutine at a time.
type Track struct {
	points []Point
	norms  int // seen so far
	step   int // norms from one that is kept to the next; 0 counts as 1
	last   Point
}

// Add takes the norm of an iteration, which must be later than those before.
func (t *Track) Add(iteration int, norm float64) {
	t.last, t.step = Point{iteration, roster.Number(norm)}, max(1, t.step)
	if t.norms%t.step == 0 {
		if len(t.points) == maxPoints { // every second one goes, from the second on
			for i := range maxPoints / 2 {
				t.points[i] = t.points[2*i]
			}
			t.points, t.step = t.points[:maxPoints/2], 2*t.step
		}
		t.points = append(t.points, t.last)
	}
	t.norms++
}

// Points returns a copy of what is kept, in the order of iterations.
func (t *Track) Points() []Point {
	points := append(make([]Point, 0, len(t.points)+1), t.points...)
	if t.norms > 0 && points[len(points)-1] != t.last {
		points = append(points, t.last)
	}
	return points
}

// The topics of a Board.
const (
	TopicRun      = "run"      // a Run
	TopicProgress = "progress" // a Progress
	TopicHistory  = "history"  // a History
	TopicRanks    = "ranks"    // a []Rank
	TopicWarnings = "warnings" // a []string
)

// Run describes a run. It does not change while the run goes on.
type Run struct {
	Title   string `json:"title"`
	ID      string `json:"id"`
	Version string `json:"version"`
	NX      int    `json:"nx"`
	NY      int    `json:"ny"`
	DType   string `json:"dtype"`
	// HX and HY are the distances between neighbouring points; 0 if they are not known.
	HX        float64     `json:"hx"`
	HY        float64     `json:"hy"`
	Method    string      `json:"method"`
	Step      string      `json:"step"`      // what an iteration is: "sweep" or "cycle"
	Tolerance float64     `json:"tolerance"` // of the norm, also a relative one; 0 if there is none
	Max       int         `json:"max"`       // iterations at most
	Facts     [][2]string `json:"facts"`     // names and texts
	// Outlines are those of problem.Outlines: x and y of the ends of lines, in points of the mesh.
	Outlines [][4]float64 `json:"outlines,omitempty"`
	NoField  string       `json:"no_field"` // why no frames can be had; "" if they can
}

// The values of Progress.State.
const (
	Starting = "starting"
	Running  = "running"
	Ended    = "ended"  // with results
	Failed   = "failed" // without
)

// Progress is how far a run is.
type Progress struct {
	State  string         `json:"state"`
	Text   string         `json:"text"`   // the state in words
	Good   bool           `json:"good"`   // of an ended run: the tolerance is met
	Sweeps int            `json:"sweeps"` // iterations done
	Share  float64        `json:"share"`  // of the whole run, 0 to 1; 0 if it is not known
	Norm   *roster.Number `json:"norm"`   // the newest one; nil before it
	GLUPs  roster.Number  `json:"glups"`
	// End is the estimated number of iterations in all, and Left the estimated seconds until then; 0 if unknown.
	End     int         `json:"end"`
	Left    float64     `json:"left"`
	Elapsed float64     `json:"elapsed"` // seconds of iterations
	Results [][2]string `json:"results"` // of an ended run: names and texts
}

// Rank is a line of the table of ranks.
type Rank struct {
	Rank   int    `json:"rank"`
	Host   string `json:"host"`
	Device string `json:"device"`
	Stripe [2]int `json:"stripe"` // rows [lo, hi)
	// The others are nil where they are not known. Waits and computation are in seconds, temperature in degrees
	// Celsius.
	Sweeps      *int     `json:"sweeps"`
	GLUPs       *float64 `json:"glups"`
	Compute     *float64 `json:"compute"`
	HaloWait    *float64 `json:"halo_wait"`
	NormWait    *float64 `json:"norm_wait"`
	Bytes       *uint64  `json:"bytes"` // of rows, both ways
	Memory      *int64   `json:"memory"`
	Temperature *float64 `json:"temperature"`
}

// History has the norms of a run, thinned out to a few thousand.
type History struct {
	Points []Point `json:"points"`
}
