// Command cpu compares the CPU backend with its peers, programs that take NX NY SWEEPS REPEATS DTYPE and print the least
// time in seconds first. Both are timed in turn, and of each the least time counts.
//
//	cpu -peer bench/peers/jacobi_omp -sizes 1024,4096,16384
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"jacobi/internal/cpu"
	"jacobi/solver"
)

func main() {
	var (
		peers   = flag.String("peers", "", "programs to compare with, comma-separated")
		sizes   = flag.String("sizes", "1024,4096,16384", "columns = rows of the meshes")
		depths  = flag.String("depths", "1,0", "sweeps in a pass; 0: the preferred number")
		kernels = flag.String("kernels", cpu.Kernels()[0], "kernels")
		dtype   = flag.String("dtype", "float32", "float32 or float64")
		threads = flag.Int("threads", 2, "threads of the backend and of the peers")
		cache   = flag.Int("cache", 0, "bytes of cache for a thread's scratch; 0: the backend's choice")
		repeats = flag.Int("repeats", 5, "times to measure")
		points  = flag.Float64("points", 4e8, "points to update in a measurement, about")
	)
	flag.Parse()
	b := bench{threads: *threads, cache: *cache, repeats: *repeats, points: *points}
	var err error
	if b.dtype, err = solver.ParseDType(*dtype); err == nil {
		b.peers, b.kernels = split(*peers), split(*kernels)
		if b.sizes, err = numbers(*sizes); err == nil {
			if b.depths, err = numbers(*depths); err == nil {
				err = b.run()
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cpu:", err)
		os.Exit(1)
	}
}

type bench struct {
	peers, kernels []string
	sizes, depths  []int
	dtype          solver.DType
	threads, cache int
	repeats        int
	points         float64
}

// contestant is one row of the table.
type contestant struct {
	name    string
	measure func() (time.Duration, error)
	sweeps  int
	close   func() error
	best    time.Duration
}

func (b *bench) run() error {
	fmt.Printf("%-8s %-34s %10s   ratio to each peer\n", "grid", "program", "GLUP/s")
	for _, n := range b.sizes {
		if err := b.size(n); err != nil {
			return fmt.Errorf("%d x %d: %w", n, n, err)
		}
	}
	return nil
}

func (b *bench) size(n int) (err error) {
	var all []*contestant
	defer func() {
		for _, c := range all {
			if e := c.close(); err == nil {
				err = e
			}
		}
	}()
	for _, p := range b.peers {
		all = append(all, b.peer(p, n))
	}
	for _, k := range b.kernels {
		for _, d := range b.depths {
			c, err := b.backend(k, n, d)
			if err != nil {
				return err
			}
			all = append(all, c)
		}
	}
	for range b.repeats {
		for _, c := range all {
			t, err := c.measure()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if c.best == 0 || t < c.best {
				c.best = t
			}
		}
	}
	speed := func(c *contestant) float64 {
		return float64(n) * float64(n) * float64(c.sweeps) / float64(c.best.Nanoseconds())
	}
	for _, c := range all {
		fmt.Printf("%-8d %-34s %10.2f  ", n, c.name, speed(c))
		for _, p := range all[:len(b.peers)] {
			fmt.Printf(" %6.2f", speed(c)/speed(p))
		}
		fmt.Println()
	}
	return nil
}

// sweeps returns the sweeps of one measurement, a multiple of depth.
func (b *bench) sweeps(n, depth int) int {
	return max(1, int(b.points/float64(n)/float64(n)+0.5)/depth) * depth
}

func (b *bench) peer(path string, n int) *contestant {
	sweeps := b.sweeps(n, 1)
	measure := func() (time.Duration, error) {
		cmd := exec.Command(path, strconv.Itoa(n), strconv.Itoa(n), strconv.Itoa(sweeps), "2", b.dtype.String())
		cmd.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(b.threads))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return 0, err
		}
		first, _, _ := strings.Cut(string(out), " ")
		seconds, err := strconv.ParseFloat(first, 64)
		return time.Duration(seconds * 1e9), err
	}
	return &contestant{name: path[strings.LastIndexByte(path, '/')+1:], measure: measure, sweeps: sweeps, close: func() error { return nil }}
}

func (b *bench) backend(kernel string, n, depth int) (*contestant, error) {
	mesh := solver.Mesh{NX: n, NY: n, DType: b.dtype}
	auto := ""
	if depth == 0 {
		depth, auto = cpu.PreferredDepth(mesh, n-2), " (auto)"
	}
	k, err := cpu.New(solver.Layout{Mesh: mesh, Stripe: mesh.Interior(), Depth: depth}, cpu.Options{Threads: b.threads, Kernel: kernel, Cache: b.cache})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := k.Load(ctx, waves{mesh}); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	sweeps := b.sweeps(n, depth)
	measure := func() (time.Duration, error) {
		start := time.Now()
		for done := 0; done < sweeps; done += depth {
			blk := solver.Block{First: done, Sweeps: depth}
			if err := k.Interior(ctx, blk); err != nil {
				return 0, err
			}
			if _, err := k.Sums(ctx, blk); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	}
	return &contestant{name: fmt.Sprintf("%s, depth %d%s", k.Describe(), depth, auto), measure: measure, sweeps: sweeps, close: k.Close}, nil
}

// waves is the initial field of the peers: no value is so small that a processor takes longer over it.
type waves struct{ mesh solver.Mesh }

func (w waves) Row(y int, dst []byte) error {
	for x := range w.mesh.NX {
		v := float64((x*7+y*13)%64) / 64
		if x == 0 || x == w.mesh.NX-1 {
			v = math.Sin(2 * math.Pi * float64(y) / float64(w.mesh.NY-1))
		}
		if w.mesh.DType == solver.Float32 {
			binary.LittleEndian.PutUint32(dst[4*x:], math.Float32bits(float32(v)))
		} else {
			binary.LittleEndian.PutUint64(dst[8*x:], math.Float64bits(v))
		}
	}
	return nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func numbers(list string) ([]int, error) {
	var ns []int
	for _, s := range split(list) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is no number from 0 up", s)
		}
		ns = append(ns, n)
	}
	return ns, nil
}
