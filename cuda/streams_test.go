package cuda

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jacobi/cuda/driver"
	"jacobi/cuda/driver/drivertest"
	"jacobi/solver"
	"jacobi/solver/jacobi"
	"jacobi/solver/multigrid"
)

var update = flag.Bool("update", false, "write testdata/streams.txt again")

// traceFile is the variable that names the file to which the driver of testdata/trace.c writes.
const traceFile = "CUDA_TRACE"

// The work of a rank goes into its streams in exactly this order, for each way of exchanging halos and for halos of one
// pass, of one sweep, and of more than a pass. The speed of small meshes depends on every call, so whoever changes the
// order measures it on GPUs, and then writes testdata/streams.txt with -update.
func TestOrderOnStreams(t *testing.T) {
	if os.Getenv(traceFile) != "" {
		traceAll(t)
		return
	}
	source, err := os.ReadFile("testdata/trace.c")
	if err != nil {
		t.Fatal(err)
	}
	fake, err := filepath.Abs("driver/drivertest/testdata/fake.c")
	if err != nil {
		t.Fatal(err)
	}
	lib := drivertest.Compile(t, "libcuda.so.1", source, fmt.Sprintf("-DFAKE=%q", fake), "-DGPUS=10",
		"-Wno-unused-function")
	file := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrderOnStreams$")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(lib), traceFile+"="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/streams.txt"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) == string(want) {
		return
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	part := ""
	for i := range min(len(g), len(w)) {
		if strings.HasPrefix(w[i], "=") {
			part = w[i]
		}
		if g[i] != w[i] {
			t.Fatalf("%s\nline %d of %s: got\n%s\nwant\n%s", part, i+1, golden, g[i], w[i])
		}
	}
	t.Fatalf("%d lines, want %d", len(g), len(w))
}

// traced is a rank whose work on streams is written down.
type traced struct {
	name  string
	self  bool
	sole  bool
	sides [2]string // "peer", "link", or "" for none
	depth int
	timed bool // a Timeline times the work
}

// traceAll writes down the work of several ranks, in a process whose driver is that of testdata/trace.c.
func traceAll(t *testing.T) {
	if noGPU != nil {
		t.Fatal(noGPU)
	}
	both := func(way string) [2]string { return [2]string{way, way} }
	for _, r := range []traced{
		{"no neighbours", false, false, both(""), 8, false},
		{"its own neighbour", true, true, both(""), 8, false},
		{"its own neighbour", true, true, both(""), 1, false},
		{"its own neighbour", true, true, both(""), 20, false},
		{"a GPU for each rank", false, true, both("peer"), 8, false},
		{"a GPU for each rank", false, true, both("peer"), 1, false},
		{"a GPU for each rank", false, true, both("peer"), 20, false},
		{"a GPU for each rank, peer above", false, true, [2]string{"peer", ""}, 8, false},
		{"a GPU for each rank, peer above, link below", false, true, [2]string{"peer", "link"}, 8, false},
		{"a GPU for each rank, link above, peer below", false, true, [2]string{"link", "peer"}, 20, false},
		{"ranks share a GPU", false, false, both("peer"), 8, false},
		{"ranks share a GPU", false, false, both("peer"), 20, false},
		{"ranks share a GPU, link above, peer below", false, false, [2]string{"link", "peer"}, 8, false},
		{"links", false, false, both("link"), 8, false},
		{"links", false, false, both("link"), 20, false},
	} {
		if err := r.trace(t.Context(), r.depth == 20); err != nil {
			t.Fatalf("%s, depth %d: %v", r.name, r.depth, err)
		}
	}
	for _, r := range []traced{
		{"timed: its own neighbour", true, true, both(""), 8, true},
		{"timed: a GPU for each rank", false, true, both("peer"), 1, true},
		{"timed: ranks share a GPU, link above, peer below", false, false, [2]string{"link", "peer"}, 8, true},
	} {
		if err := r.trace(t.Context(), false); err != nil {
			t.Fatalf("%s, depth %d: %v", r.name, r.depth, err)
		}
	}
	for _, w := range []way{
		{name: "a GPU for each rank", sole: true},
		{name: "a GPU for each rank, link below", sole: true, apart: true},
		{name: "ranks share a GPU"},
		{name: "ranks share a GPU, link below", apart: true},
	} {
		if err := traceLevels(t.Context(), w); err != nil {
			t.Fatalf("levels, %s: %v", w.name, err)
		}
	}
}

// traceLevels writes down the work of the middle one of three ranks of multigrid in a cycle. It reaches the memory of
// the others or, if w is apart, only that of the one above.
func traceLevels(ctx context.Context, w way) (err error) {
	r := traced{}
	if err := r.write("== levels, %s", w.name); err != nil {
		return err
	}
	plan, err := multigrid.NewPlan(solver.Mesh{NX: 64, NY: 300, DType: solver.Float64}, solver.Operator{})
	if err != nil {
		return err
	}
	z := &zoned{driver: gpu, plan: plan, levels: make([]*Levels, 3)}
	thirds := []solver.Stripe{{Lo: 1, Hi: 100}, {Lo: 100, Hi: 200}, {Lo: 200, Hi: 299}}
	z.stripes, z.agglomerated = plan.Divide(thirds, 2000)
	const large = 9 // the fake GPU with enough shared memory
	v, err := NewLevels(gpu, plan.LayoutOf(z.stripes, z.agglomerated, 1), Options{Device: large})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err := v.OpenWindow(3); err != nil {
		return err
	}
	host := solver.NewHostExchange([2]solver.RowLink{silent{}, silent{}}, solver.HostOptions{Rank: 1,
		Most: multigrid.HaloDepth * plan.Levels[0].Mesh.RowBytes()})
	all := make([]*Window, 3)
	for _, rank := range []int{0, 2} {
		offer, err := json.Marshal(offer{Rank: rank, Shape: v.window.shape(),
			Memory: []driver.IPCHandle{fakeHandle(uint64(rank/2+1) << 32)}})
		if err != nil {
			return err
		}
		if all[rank], err = v.MapWindow(offer); err != nil {
			return err
		}
	}
	neighbours := [2]*Window{all[0], all[2]}
	if w.apart {
		neighbours[solver.Bottom], all = nil, nil
	}
	x, err := NewLevelExchange(v, host, 1, neighbours, all, w.sole)
	if err != nil {
		return err
	}
	z.levels, z.exchanges = []*Levels{nil, v}, []*LevelExchange{nil, x}
	errs := []error{r.write("-- cycle"), z.cycle(ctx, 1), r.write("-- Drain"), x.Drain(ctx), r.write("-- Close")}
	return errors.Join(append(errs, x.Close())...)
}

// write adds a line to the file.
func (r traced) write(format string, a ...any) error {
	f, err := os.OpenFile(os.Getenv(traceFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, format+"\n", a...)
	return errors.Join(err, f.Close())
}

// trace does a few passes, and then either goes back by half a pass or begins again.
func (r traced) trace(ctx context.Context, restart bool) (err error) {
	if err := r.write("== %s, depth %d", r.name, r.depth); err != nil {
		return err
	}
	b, err := New(gpu, r.layout(), Options{Sole: r.sole})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	x, err := r.exchange(b)
	if err != nil {
		return err
	}
	e, err := jacobi.New(b, x, &solver.Watch{}, jacobi.Options{Depth: r.depth,
		MaxSweeps: min(r.depth, b.Limits().MaxSweeps), Initial: numbered{}})
	if err != nil {
		return err
	}
	passes, end := 3, 0
	if restart {
		passes = 2
	}
	errs := []error{r.write("-- Load"), b.Load(ctx, numbered{})}
	var times *Timeline
	if r.timed {
		if times, err = b.Timeline(1, r.onWork(&errs)); err != nil {
			return err
		}
	}
	for i := range passes {
		if r.timed {
			times.Begin(i)
		}
		errs = append(errs, r.write("-- pass %d", i))
		p, err := e.Advance(ctx, 1000, 1000)
		errs = append(errs, err, r.write("-- Sums"))
		_, err = b.Sums(ctx, p)
		errs = append(errs, err)
	}
	if !restart {
		end = e.Done() - max(1, r.depth%16/2)
	}
	lo := b.dev.layout.Stripe.Lo
	rows := make([]byte, 8*b.dev.layout.Mesh.RowBytes())
	errs = append(errs, r.write("-- CopyRows"), b.CopyRows(ctx, solver.Stripe{Lo: lo, Hi: lo + 8}, rows),
		r.write("-- Rewind from %d to %d sweeps", e.Done(), end), e.Finish(ctx, end))
	if restart {
		errs = append(errs, r.write("-- last pass"))
		_, err := e.Advance(ctx, 1, 1)
		errs = append(errs, err)
	}
	if r.timed {
		errs = append(errs, r.write("-- End"))
		_, err := times.End(ctx)
		errs = append(errs, err)
	}
	return errors.Join(append(errs, r.write("-- Close"), x.Close())...)
}

// onWork writes down what a Timeline hands over. The driver's clock goes on by 1 us from one event to the next.
func (r traced) onWork(errs *[]error) solver.OnWork {
	var ends [solver.WorkQueues]time.Time
	return func(w solver.Work, unit int, start time.Time, took time.Duration) {
		*errs = append(*errs, r.write("unit %d: %+v took %v", unit, w, took))
		if start.Before(ends[w.Queue]) {
			*errs = append(*errs, fmt.Errorf("%+v began before the work before it ended", w))
		}
		ends[w.Queue] = start.Add(took)
	}
}

func (r traced) layout() solver.Layout {
	l := solver.Layout{Mesh: solver.Mesh{NX: 64, NY: 258, DType: solver.Float32},
		Stripe: solver.Stripe{Lo: 64, Hi: 128}, Depth: r.depth,
		Neighbour: [2]bool{r.self || r.sides[0] != "", r.self || r.sides[1] != ""}}
	l.Mesh.Walls = solver.WrapRows(r.self)
	if r.self || !l.Neighbour[solver.Top] {
		l.Stripe.Lo = 1
	}
	if r.self || !l.Neighbour[solver.Bottom] {
		l.Stripe.Hi = 257
	}
	return l
}

func (r traced) exchange(b *Backend) (*Exchange, error) {
	var neighbours [2]*Window
	var links [2]solver.RowLink
	if err := b.OpenWindow(2); err != nil {
		return nil, err
	}
	for side, way := range r.sides {
		switch way {
		case "link":
			links[side] = silent{}
		case "peer":
			at := uint64(side+1) << 32
			offer, err := json.Marshal(offer{Rank: side, Shape: b.dev.windowShape(),
				Rows:   solver.Stripe{Lo: 10, Hi: 60},
				Memory: []driver.IPCHandle{fakeHandle(at), fakeHandle(at + 1<<24), fakeHandle(at + 2<<24)}})
			if err != nil {
				return nil, err
			}
			if neighbours[side], err = b.MapWindow(offer); err != nil {
				return nil, err
			}
		}
	}
	return NewExchange(b, r.self, neighbours, links)
}

// fakeHandle returns the handle by which the fake driver maps memory at an address.
func fakeHandle(address uint64) (h driver.IPCHandle) {
	for i := range h.Words {
		h.Words[i] = address + uint64(i)
	}
	return h
}

// silent is a link that drops what it is given and receives rows of zeros at once.
type silent struct{}

func (silent) Send(context.Context, solver.ExchangeNumber, []byte) error { return nil }
func (silent) Recv(context.Context, solver.ExchangeNumber, []byte) error { return nil }
