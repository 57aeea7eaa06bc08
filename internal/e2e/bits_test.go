package e2e

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jacobi/internal/compute/cpu/kernel"
)

// The norms of the multi-GPU sample's problem match all known digits, for several numbers of ranks.
func TestNormsOfTheMultiGPUSample(t *testing.T) {
	t.Parallel()
	want := []string{"0.225864", "0.134109", "0.098835", "0.079573", "0.067244", "0.058592", "0.052145", "0.047130",
		"0.043104", "0.0397910816"}
	var first answer
	for _, np := range []string{"1", "3", "8"} {
		got, _ := solve(t, append(set("grid.nx=1024", "grid.ny=1024", "output.picture="), "-np", np)...)
		norms := normsOf(t, got.history)
		for i, w := range want {
			digits := len(w) - 2
			if n := strconv.FormatFloat(norms[100*i+99], 'f', digits, 64); n != w {
				t.Errorf("np %s, sweep %d: norm %s, want %s", np, 100*i+99, n, w)
			}
		}
		if got.sweeps != 1000 || got.reason != "max_iterations" || len(norms) != 1000 {
			t.Errorf("np %s: %d sweeps (%s), %d norms; want 1000 (max_iterations)", np, got.sweeps, got.reason,
				len(norms))
		}
		if first.sha == "" {
			first = got
		}
		if got != first {
			t.Errorf("np %s: another answer than np 1: field %s, want %s", np, got.sha, first.sha)
		}
	}
}

func normsOf(t *testing.T, history string) []float64 {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(history)).ReadAll()
	if err != nil || !slices.Equal(lines[0], []string{"iteration", "l2_norm"}) {
		t.Fatalf("history: %v, header %v", err, lines[0])
	}
	var norms []float64
	for i, l := range lines[1:] {
		v, err := strconv.ParseFloat(l[1], 64)
		if err != nil || l[0] != strconv.Itoa(i) {
			t.Fatalf("history line %d: %v", i+2, l)
		}
		norms = append(norms, v)
	}
	return norms
}

// The problems of the matrix. One is periodic and meets its tolerance in the middle of a pass for every depth. The
// other has fixed sides and an odd width, and runs to max_iterations.
var problems = map[string][]string{
	"converges": {"grid.nx=97", "grid.ny=131", "solver.tolerance=0.31", "solver.max_iterations=400"},
	"fixed": {"grid.nx=130", "grid.ny=141", "problem.preset=dirichlet", "problem.initial=sin(7*x)*y - 0.3",
		"problem.left=y*y", "solver.max_iterations=43"},
}

// The answer is the same for any number of ranks, transport, depth and kernel: each pair of them is run in each of the
// four problems, and with BITS=all every combination. That every kernel gives the bits of the reference at every depth,
// and that every transport delivers what was sent, is proven without processes (solver/backendtest, halo/halotest).
func TestSameBits(t *testing.T) {
	kernels, ranks, depths := kernel.Names(), []int{1, 2, 3, 5, 8}, []int{1, 2, 5, 8}
	shift := 0
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		for _, dtype := range []string{"float32", "float64"} {
			own := shift
			shift++
			t.Run(name+"/"+dtype, func(t *testing.T) {
				t.Parallel()
				base := append([]string{"grid.dtype=" + dtype, "output.picture=", "output.field="}, problems[name]...)
				want, _ := solve(t, append(set(append(base, "device.kernel=portable", "halo.depth=1")...), "-np",
					"1")...)
				if name == "converges" && want.reason != "converged" {
					t.Fatalf("the run ended by %s after %d sweeps", want.reason, want.sweeps)
				}
				for i, np := range ranks {
					for j, depth := range depths {
						for k, kernel := range kernels {
							for l, transport := range []string{"nats", "p2p"} {
								if np == 1 && transport == "nats" {
									continue // a rank alone has no neighbour to reach over NATS
								}
								if (i+j+k+own)%len(kernels) != 0 || np > 1 && (i+j/2+own)%2 != l {
									if os.Getenv("BITS") != "all" {
										continue
									}
								}
								args := append(set(append(base, "device.kernel="+kernel, "halo.transport="+transport,
									fmt.Sprintf("halo.depth=%d", depth))...), "-np", strconv.Itoa(np))
								if got, _ := solve(t, args...); got != want {
									t.Errorf("%q: %d sweeps (%s), field %s; want %d (%s), %s; histories equal: %v",
										args, got.sweeps, got.reason, got.sha, want.sweeps, want.reason, want.sha,
										got.history == want.history)
								}
							}
						}
					}
				}
			})
		}
	}
}

// Rows that travel packed are the same bits, and the report says how much was packed.
func TestPackedRows(t *testing.T) {
	t.Parallel()
	for dtype, size := range map[string]int{"float32": 4, "float64": 8} {
		args := []string{"grid.nx=300", "grid.ny=96", "grid.dtype=" + dtype, "solver.max_iterations=200",
			"halo.depth=7", "output.picture="}
		want, _ := solve(t, append(set(args...), "-np", "1")...)
		got, rep := solve(t, append(set(append(args, "halo.transport=nats", "halo.compress=always")...), "-np", "3")...)
		if got != want {
			t.Errorf("%s: %d sweeps (%s), field %s; want %d (%s), %s", dtype, got.sweeps, got.reason, got.sha,
				want.sweeps, want.reason, want.sha)
		}
		for _, k := range rep.Ranks {
			for side, l := range k.Transports {
				if l.NATS == nil || l.NATS.Plain == 0 || l.NATS.Packed >= l.NATS.Plain {
					t.Errorf("%s, rank %d, %s: %+v; want fewer bytes packed than plain", dtype, k.Rank, side, l.NATS)
				}
				// 28 passes of 7 sweeps, and one of 4 that no exchange follows
				checkTraffic(t, rep, k.Rank, side, 28, 28*2*7*300*size)
			}
		}
	}
}

// checkTraffic checks what went over a link, and the parts of its way, on which both ranks agree.
func checkTraffic(t *testing.T, r report, rank int, side string, exchanges, bytes int) {
	t.Helper()
	here := r.Ranks[rank].Transports[side]
	there := r.Ranks[here.Neighbour].Transports[map[string]string{"top": "bottom", "bottom": "top"}[side]].Traffic
	n := here.Traffic
	if n == nil || there == nil || n.Exchanges != exchanges || n.Bytes != bytes {
		t.Errorf("rank %d, %s: traffic %+v and %+v, want %d exchanges and %d bytes", rank, side, n, there, exchanges,
			bytes)
		return
	}
	for name, part := range map[string]*float64{"copy out": n.CopyOut, "frame": n.Frame, "unframe": n.Unframe,
		"copy in": n.CopyIn} {
		if part == nil || !(*part > 0) {
			t.Errorf("rank %d, %s: %s: got %v, want a time", rank, side, name, part)
		}
	}
	if n.Wire == nil || n.Late == nil || there.Wire == nil || there.Late == nil {
		t.Errorf("rank %d, %s: traffic %+v and %+v, want the time on the wire", rank, side, *n, *there)
	} else if *n.Wire != *there.Wire || *n.Late != -*there.Late {
		t.Errorf("rank %d, %s: %v s on the wire and %v s late; its neighbour says %v and %v", rank, side, *n.Wire,
			*n.Late, *there.Wire, *there.Late)
	}
}
