package rank

import (
	"cmp"
	"fmt"
	"testing"

	"jacobi/halo"
	"jacobi/internal/base/shm"
	"jacobi/internal/compute/device"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// Rows go through peer memory if neither rank has found a fault. With halo.transport p2p it is an error if two GPUs
// cannot reach each other.
func TestDecideSide(t *testing.T) {
	for _, test := range []struct {
		device, node, transport string // of the neighbour; "" for this rank's node
		mine, theirs            string // faults
		why, err                string // why a link is used; the error
	}{
		{device: "cuda"},
		{device: "cuda", transport: "p2p"},
		{device: "cuda", mine: "no IPC", why: "no IPC"},
		{device: "cuda", theirs: "no IPC", why: "rank 1: no IPC"},
		{device: "cuda", mine: "no IPC", theirs: "busy", why: "no IPC"},
		{device: "cuda", node: "other", mine: "x", why: "rank 1 is on another node, or in another container"},
		{device: "cpu", why: "rank 1 has no GPU"},
		{device: "cpu", transport: "p2p", why: "rank 1 has no GPU"},
		{device: "cuda", transport: "p2p", mine: "no IPC",
			err: "halo.transport \"p2p\": no peer memory between ranks 0 and 1: no IPC"},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			j := joinAlone(t.Context(), t, func(o *Options) {
				o.Config.Halo.Transport = cmp.Or(test.transport, "auto")
			})
			j.gpus = &device.Node{} // a GPU sweeps
			to := roster.Member{Identity: roster.Identity{Rank: 1}, Role: roster.Role{Device: test.device},
				Node: shm.Node{Boot: test.node}}
			if test.node == "" {
				to.Node = j.comm.Self().Node
			}
			var w windows
			err := j.decideSide(&w, solver.Bottom, to, test.mine, test.theirs)
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Errorf("%v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var direct halo.Info
			if test.why == "" {
				direct = halo.Info{Transport: transportPeer, Why: "same node, device memory mapped by CUDA IPC"}
			}
			if w.deviceMemory != [2]halo.Info{{}, direct} || w.whyLink != [2]string{"", test.why} {
				t.Errorf("through device memory %+v, over a link because %q", w.deviceMemory, w.whyLink)
			}
		})
	}
}

// All ranks reach all only if each has a GPU in one memory and rows may go there: levels are divided by that.
func TestReachAll(t *testing.T) {
	a := roster.Member{Role: roster.Role{Device: "cuda"}, Node: shm.Node{Boot: "one"}}
	b := a
	b.Rank = 1
	far, cpu := b, b
	far.Node.Boot, cpu.Device = "other", "cpu"
	for _, c := range []struct {
		name      string
		members   []roster.Member
		transport string
		want      bool
	}{
		{"one node", []roster.Member{a, b}, "auto", true},
		{"peer memory alone", []roster.Member{a, b}, "p2p", true},
		{"NATS", []roster.Member{a, b}, "nats", false},
		{"alone", []roster.Member{a}, "auto", false},
		{"two nodes", []roster.Member{a, far}, "auto", false},
		{"a CPU", []roster.Member{a, cpu}, "auto", false},
		{"the first on a CPU", []roster.Member{cpu, a}, "auto", false},
	} {
		if got := reachAll(c.members, c.transport); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// The report has no wait for halos where the GPU itself waits for all of them.
func TestGPUWaits(t *testing.T) {
	peer, link := halo.Info{Transport: transportPeer}, halo.Info{}
	for _, test := range []struct {
		neighbour [2]bool
		direct    [2]halo.Info
		want      bool
	}{
		{[2]bool{false, false}, [2]halo.Info{}, false},
		{[2]bool{true, true}, [2]halo.Info{peer, peer}, true},
		{[2]bool{true, true}, [2]halo.Info{peer, link}, false},
		{[2]bool{false, true}, [2]halo.Info{link, peer}, true},
		{[2]bool{false, true}, [2]halo.Info{link, link}, false},
	} {
		d := &divided{layout: solver.Layout{Neighbour: test.neighbour}}
		w := &wired{equipped: &equipped{divided: d}, windows: windows{deviceMemory: test.direct}}
		if got := w.gpuWaits(); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}
