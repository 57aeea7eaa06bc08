package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// Writer writes a trace, rank by rank: an object of the Trace Event Format (JSON), with one event a line. Times are in
// microseconds since zero, to the nanosecond. displayTimeUnit says so: without it, chrome://tracing rounds them to
// microseconds, and draws a short slice within the one before it. A rank is a process whose pid is its number plus 1,
// since viewers take 0 for the idle process. No two threads have the same tid, since Perfetto names threads by it
// alone.
type Writer struct {
	to   *bufio.Writer
	zero int64 // by the clock of rank 0
	size int
	line []byte
	next string // before the next event
	err  error
}

// NewWriter begins a trace of a run of the given number of ranks.
func NewWriter(w io.Writer, zero int64, size int) *Writer {
	t := &Writer{to: bufio.NewWriterSize(w, 1<<20), zero: zero, size: size}
	t.write([]byte(`{"displayTimeUnit":"ns","traceEvents":[`))
	return t
}

func (w *Writer) write(b []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
	}
}

// event writes what w.line has of an event.
func (w *Writer) event() {
	w.write([]byte(w.next + "\n"))
	w.write(w.line)
	w.next = ","
}

// Rank writes the events of a rank on a node with the given clock. It returns the first error of all writes so far.
func (w *Writer) Rank(rank int, about Name, p Part, c Clock) error {
	pid := rank + 1
	w.name(pid, pid*10+trackSolver, "process_name", "name", fmt.Sprintf("rank %d on %s: %s", rank, about.Host,
		about.Device))
	w.name(pid, pid*10+trackSolver, "process_sort_index", "sort_index", rank)
	for i, records := range p.tracks {
		if len(records) == 0 {
			continue
		}
		tid := pid*10 + i
		w.name(pid, tid, "thread_name", "name", w.threadName(i, rank))
		w.name(pid, tid, "thread_sort_index", "sort_index", i)
		slices.SortStableFunc(records, func(a, b record) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Took, a.Took),
				cmp.Compare(a.Kind.encloses(), b.Kind.encloses()))
		})
		flows := w.flowsOf(i, rank, records)
		for _, r := range records {
			start, end := c.there(r.Start)-w.zero, c.there(r.Start+r.Took)-w.zero
			w.slice(pid, tid, start, end, r)
			w.flow(pid, tid, start, end, r, flows)
		}
	}
	return w.err
}

// above returns the rank above another one. The last rank is above the first, as between periodic sides.
func (w *Writer) above(rank int) int { return (rank - 1 + w.size) % w.size }

// threadName returns the name of a track of a rank.
func (w *Writer) threadName(track, rank int) string {
	switch track {
	case trackTop:
		return fmt.Sprintf("link to rank %d (top)", w.above(rank))
	case trackBottom:
		return fmt.Sprintf("link to rank %d (bottom)", (rank+1)%w.size)
	case trackSaver:
		return "checkpoints"
	case trackSolver:
		return "solver"
	}
	return fmt.Sprintf("GPU, stream %d", track-trackDevice)
}

// name writes a metadata event.
func (w *Writer) name(pid, tid int, name, key string, value any) {
	text := w.json(value)
	w.line = fmt.Appendf(w.line[:0], `{"ph":"M","pid":%d,"tid":%d,"ts":0,"name":"%s","args":{"%s":%s}}`, pid, tid, name,
		key, text)
	w.event()
}

// json returns a value as JSON, in which no character but those that JSON reserves is escaped: Perfetto passes other
// escapes on as they are.
func (w *Writer) json(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); w.err == nil {
		w.err = err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// slice writes a complete event.
func (w *Writer) slice(pid, tid int, start, end int64, r record) {
	w.line = fmt.Appendf(w.line[:0], `{"ph":"X","pid":%d,"tid":%d,"ts":`, pid, tid)
	w.line = appendMicroseconds(w.line, start)
	w.line = append(w.line, `,"dur":`...)
	w.line = appendMicroseconds(w.line, end-start)
	w.line = fmt.Appendf(w.line, `,"name":"%s","cat":"%s","args":`, r.Kind.name(r.Level), r.Kind.category())
	w.line = append(r.appendArgs(w.line), '}')
	w.event()
}

// flows are the exchanges of a link's track whose rows are drawn as arrows.
type flows struct {
	side  solver.Side
	edge  int // the boundary between stripes, counted by the rank above it
	whole map[uint64]bool
}

// flowsOf returns the flows of a track. All ranks keep the same passes, so that the neighbour has both the send and the
// receive of an exchange if this rank has.
func (w *Writer) flowsOf(track, rank int, records []record) flows {
	f := flows{edge: rank, side: solver.Bottom}
	switch track {
	case trackTop:
		f.side, f.edge = solver.Top, w.above(rank)
	case trackBottom:
	default:
		return f
	}
	f.whole = map[uint64]bool{}
	half := map[uint64]kind{}
	for _, r := range records {
		if r.Kind == kindRoom {
			continue
		}
		if other, ok := half[r.Number]; ok && other != r.Kind {
			f.whole[r.Number] = true
		}
		half[r.Number] = r.Kind
	}
	return f
}

// flow writes the beginning of an arrow in a send, and its end at the end of a receive.
func (w *Writer) flow(pid, tid int, start, end int64, r record, f flows) {
	if !f.whole[r.Number] || r.Kind == kindRoom {
		return
	}
	ph, at, direction := `"s"`, start, f.side
	if r.Kind == kindReceive {
		ph, at, direction = `"f","bp":"e"`, max(start, end-1), f.side.Opposite() // within the slice
	}
	id := (r.Number*uint64(w.size)+uint64(f.edge))*2 + uint64(direction)
	w.line = fmt.Appendf(w.line[:0], `{"ph":%s,"pid":%d,"tid":%d,"ts":`, ph, pid, tid)
	w.line = appendMicroseconds(w.line, at)
	w.line = fmt.Appendf(w.line, `,"id":%d,"name":"rows","cat":"rows"}`, id)
	w.event()
}

// appendMicroseconds appends ns nanoseconds as a decimal number of microseconds.
func appendMicroseconds(b []byte, ns int64) []byte {
	if ns < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendInt(b, ns/1000, 10)
	return fmt.Appendf(b, ".%03d", ns%1000)
}

// About is what a trace says about its run.
type About struct {
	Program string `json:"program"` // with its version
	Run     string `json:"run"`     // the run's name; may be empty
	RunID   string `json:"run_id"`
	Begin   string `json:"begin"`  // the date and time of ts 0, by the clock of rank 0
	Method  string `json:"method"` // solver.method
	// Passes counts the passes, or cycles of multigrid, that began with the sweeps trace.from to trace.to. Dropped of
	// them are missing between the first and the last trace.passes ones.
	Passes  int `json:"passes"`
	Dropped int `json:"dropped"`
	// Clocks are those of the kernels on which ranks ran. That of rank 0 is the first one.
	Clocks []NodeClock `json:"clocks"`
	GPUs   []GPUClock  `json:"gpus,omitempty"` // that timed their work
}

// GPUClock says how well the clock of a rank's GPU is known.
type GPUClock struct {
	Rank  int   `json:"rank"`
	Error int64 `json:"error_ns"` // bound on the error of the start times against those of the host
}

// NodeClock is the clock of the ranks under one kernel. Their times are given by the clock of rank 0.
type NodeClock struct {
	Host  string `json:"host"`
	Ranks []int  `json:"ranks"`
	Clock
	Drifts bool `json:"drifts"` // the times between the readings follow a line through both
}

// Close ends the trace. The underlying writer stays open.
func (w *Writer) Close(about About) error {
	w.write([]byte("\n],\n\"otherData\":"))
	w.write(w.json(about))
	w.write([]byte("}\n"))
	if w.err == nil {
		w.err = w.to.Flush()
	}
	return w.err
}

// tag is that of a rank's part of the trace.
const tag = "trace"

// Gathering brings what the ranks have recorded into one file.
type Gathering struct {
	comm     *roster.Comm
	recorder *Recorder
	at       time.Time
	zero     int64   // the beginning of the trace, on rank 0
	clock    Reading // of a rank that compares its clock
}

// Begin compares the clocks of the nodes and begins to record. All ranks call it before they sweep.
func Begin(ctx context.Context, comm *roster.Comm, r *Recorder) (*Gathering, error) {
	g := &Gathering{comm: comm, recorder: r}
	var err error
	if g.clock, err = g.compareClocks(ctx); err != nil {
		return nil, err
	}
	g.at, g.zero = time.Now(), r.Now()
	r.Start()
	return g, nil
}

// compareClocks compares the clocks of all kernels on which ranks run with that of rank 0. All ranks call it. The ranks
// that compare get a reading.
func (g *Gathering) compareClocks(ctx context.Context) (reading Reading, err error) {
	of := clockOf(g.comm.Members())
	if self := g.comm.Self().Rank; self > 0 {
		if of[self] != self {
			return reading, nil
		}
		ahead, bound, err := g.comm.CompareClock(ctx, g.recorder.Now)
		return Reading{At: g.recorder.Now(), Ahead: int64(ahead), Error: int64(bound)}, err
	}
	for rank, by := range of {
		if rank > 0 && by == rank {
			if err := g.comm.TellTime(ctx, rank, g.recorder.Now); err != nil {
				return reading, err
			}
		}
	}
	return reading, nil
}

// clockOf returns, by rank, the first rank under the same kernel. Ranks under one kernel have one clock.
func clockOf(members []roster.Member) []int {
	of, first := make([]int, len(members)), map[string]int{}
	for rank, m := range members {
		of[rank] = rank
		if m.Node.Boot == "" {
			continue
		}
		if by, ok := first[m.Node.Boot]; ok {
			of[rank] = by
		} else {
			first[m.Node.Boot] = rank
		}
	}
	return of
}

// part returns what this rank has recorded.
func (g *Gathering) part(ctx context.Context) (Part, error) {
	after, err := g.compareClocks(ctx)
	if err != nil {
		return Part{}, err
	}
	p, err := g.recorder.Part(ctx)
	p.Clock = Clock{Before: g.clock, After: after}
	return p, err
}

// Send sends this rank's part to rank 0.
func (g *Gathering) Send(ctx context.Context) error {
	p, err := g.part(ctx)
	if err != nil {
		return err
	}
	data, err := p.Encode()
	if err != nil {
		return err
	}
	return g.comm.Send(ctx, 0, tag, data)
}

// Write writes the parts of all ranks, one after the other, on rank 0. about says what they do not know, and names has
// the names of the ranks and of their hosts. It takes the parts of all ranks even if it cannot write them, because the
// ranks wait for that. It returns how many passes rank 0 has recorded, and how many it has dropped.
func (g *Gathering) Write(ctx context.Context, file io.Writer, about About, names []Name) (passes, dropped int,
	err error) {
	own, err := g.part(ctx)
	if err != nil {
		return 0, 0, err
	}
	about.Begin, about.Passes, about.Dropped = g.at.Format(time.RFC3339Nano), int(own.Passes), int(own.Dropped)
	w, of := NewWriter(file, g.zero, len(names)), clockOf(g.comm.Members())
	nodes := map[int]int{} // index in about.Clocks of the node whose clock a rank has compared
	for rank, by := range of {
		part, received := own, error(nil)
		if rank > 0 {
			if part, received = g.receive(ctx, rank); received != nil {
				err = errors.Join(err, fmt.Errorf("part of rank %d: %w", rank, received))
				continue
			}
		}
		if by == rank {
			nodes[rank] = len(about.Clocks)
			about.Clocks = append(about.Clocks, NodeClock{Host: names[rank].Host, Clock: part.Clock,
				Drifts: part.Clock.Drifts()})
		}
		if part.DeviceError > 0 {
			about.GPUs = append(about.GPUs, GPUClock{Rank: rank, Error: part.DeviceError})
		}
		node := &about.Clocks[nodes[by]]
		node.Ranks = append(node.Ranks, rank)
		if writeErr := w.Rank(rank, names[rank], part, node.Clock); err == nil {
			err = writeErr
		}
	}
	if err != nil {
		return about.Passes, about.Dropped, err
	}
	return about.Passes, about.Dropped, w.Close(about)
}

func (g *Gathering) receive(ctx context.Context, rank int) (Part, error) {
	data, err := g.comm.Recv(ctx, rank, tag)
	if err != nil {
		return Part{}, err
	}
	return Decode(data)
}

// Name says what a rank is.
type Name struct{ Host, Device string }
