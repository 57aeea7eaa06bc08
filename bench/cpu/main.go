// Command cpu compares the product, started by its launcher as users start it, with peers in C (see bench/peers) and
// prints a table. The programs that are compared run in turn, and the shortest time of each counts. Times are of the
// sweeps only.
//
//	cpu -launcher bin/launcher -peers bin/peers [-quick]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"jacobi/internal/compute/device"
)

func main() {
	var (
		b     bench
		quick = flag.Bool("quick", false, "less often and without the largest mesh, in a minute or two")
	)
	flag.StringVar(&b.launcher, "launcher", "bin/launcher", "the launcher, with jacobi-rank beside it")
	flag.StringVar(&b.peers, "peers", "bin/peers", "folder of the peers: jacobi_omp, copy and, where there is an "+
		"MPI, jacobi_mpi")
	flag.Parse()
	b.cores, b.repeats, b.points, b.sizes = runtime.NumCPU(), 5, 4e9, []int{1024, 4096, 16384}
	if *quick {
		b.repeats, b.points, b.sizes = 2, 2e9, b.sizes[:2]
	}
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "cpu:", err)
		os.Exit(1)
	}
}

type bench struct {
	launcher, peers string
	cores           int
	repeats         int
	points          float64 // approximate number of points updated in a measurement
	sizes           []int
	out             string // directory of reports
}

func (b *bench) run() (err error) {
	if b.out, err = os.MkdirTemp("", "bench-cpu-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.out)
	fmt.Printf("%s, %d cores; the least of %d runs each; GLUP/s: 10^9 points a second\n\n", device.Processor(), b.cores,
		b.repeats)
	for _, section := range []func() error{b.kernels, b.ranks, b.start} {
		if err := section(); err != nil {
			return err
		}
	}
	return nil
}

// kernels compares one rank with the OpenMP peer, both with one thread per core, and also one sweep per pass with a
// copy.
func (b *bench) kernels() error {
	fmt.Printf("One rank of %[1]d threads against OpenMP with %[1]d threads; %% of copy: of the points that a copy of "+
		"the field would move\n", b.cores)
	fmt.Printf("%6s  %-8s %-8s %6s %9s %9s %7s %10s\n", "mesh", "type", "field", "T", "peer", "product", "ratio",
		"% of copy")
	for _, n := range b.sizes {
		for _, dtype := range []string{"float32", "float64"} {
			for _, field := range []string{"plain", "gtc2019"} {
				if err := b.kernel(run{n: n, dtype: dtype, field: field, ranks: 1, sweeps: b.sweeps(n)}); err != nil {
					return fmt.Errorf("%d x %d %s %s: %w", n, n, dtype, field, err)
				}
			}
		}
	}
	fmt.Println()
	return nil
}

func (b *bench) kernel(r run) error {
	depths := []int{0, 1}
	if r.dtype == "float64" {
		depths = depths[:1]
	}
	all := []measure{b.openMP(r), b.copy(r)}
	for _, d := range depths {
		once := r
		once.depth = d
		all = append(all, b.product(once))
	}
	seconds, err := least(b.repeats, all...)
	if err != nil {
		return err
	}
	points := float64(r.n) * float64(r.n) / 1e9
	peer, roof := points*float64(r.sweeps)/seconds[0], points/seconds[1]
	for i, d := range depths {
		speed, depth := points*float64(r.sweeps)/seconds[2+i], "auto"
		if d != 0 {
			depth = fmt.Sprint(d)
		}
		fmt.Printf("%6d  %-8s %-8s %6s %9.2f %9.2f %7.2f %9.0f%%\n", r.n, r.dtype, r.field, depth, peer, speed,
			speed/peer, 100*speed/roof)
	}
	return nil
}

// ranks compares divisions of the cores into ranks and threads.
func (b *bench) ranks() error {
	fmt.Printf("Ranks, float32, field plain, T auto; ratio: to the line named\n")
	fmt.Printf("%6s  %-44s %9s   %s\n", "mesh", "", "GLUP/s", "ratio")
	for _, n := range b.sizes[:2] {
		r := run{n: n, dtype: "float32", field: "plain", ranks: b.cores, sweeps: b.sweeps(n)}
		one, many, nats := r, r, r
		one.ranks, many.ranks, nats.transport = 1, 4*b.cores, "nats"
		names := []string{
			fmt.Sprintf("1 rank of %d threads", b.cores), fmt.Sprintf("%d ranks of 1 thread", b.cores),
			fmt.Sprintf("%d ranks of 1 thread", many.ranks), fmt.Sprintf("%d ranks, NATS", b.cores),
		}
		against := []int{0, 0, 1, 1}
		all := []measure{b.product(one), b.product(r), b.product(many), b.product(nats)}
		if b.hasMPI() {
			names = append(names, fmt.Sprintf("Open MPI, %d ranks, shared memory", b.cores),
				fmt.Sprintf("Open MPI, %d ranks, TCP", b.cores))
			against = append(against, 1, 3)
			all = append(all, b.mpi(r), b.mpi(r, "--mca", "btl", "tcp,self"))
		}
		seconds, err := least(b.repeats, all...)
		if err != nil {
			return fmt.Errorf("%d x %d: %w", n, n, err)
		}
		for i, name := range names {
			speed := float64(n) * float64(n) / 1e9 * float64(r.sweeps) / seconds[i]
			fmt.Printf("%6d  %-44s %9.2f   %.2f of %s\n", n, name, speed, seconds[against[i]]/seconds[i],
				names[against[i]])
		}
	}
	if !b.hasMPI() {
		fmt.Println("no mpicc when the peers were built: no Open MPI")
	}
	fmt.Println()
	return nil
}

// start measures the time from the launcher's start to the first sweep.
func (b *bench) start() error {
	r := run{n: 2048, dtype: "float32", field: "gtc2019", ranks: 4, sweeps: 16}
	seconds, err := least(b.repeats, b.first(r))
	if err != nil {
		return err
	}
	fmt.Printf("From the launcher's start to the first sweep, %d ranks, %d x %d: %.2f s\n", r.ranks, r.n, r.n,
		seconds[0])
	return nil
}

// sweeps returns the number of sweeps of one measurement, a multiple of 16 and so of the usual depths.
func (b *bench) sweeps(n int) int {
	return max(2, int(b.points/float64(n)/float64(n)/16)) * 16
}

func (b *bench) hasMPI() bool {
	_, err := os.Stat(filepath.Join(b.peers, "jacobi_mpi"))
	return err == nil
}
