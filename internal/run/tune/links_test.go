package tune

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"jacobi/halo"
	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/run/setup"
)

// The links between neighbours that share no memory, or may not use it, are measured.
func TestLinksToMeasure(t *testing.T) {
	on := func(device string, nodes ...string) (members []roster.Member) {
		for rank, boot := range nodes {
			m := roster.Member{Role: roster.Role{Device: device}, Node: shm.Node{Boot: boot}}
			m.Rank, m.LocalRank = rank, rank // so that ranks of one node make a group
			members = append(members, m)
		}
		return members
	}
	mixed := on("cuda", "a", "b")
	mixed[1].Device = "cpu"
	for _, c := range []struct {
		members  []roster.Member
		mode     halo.Mode
		periodic bool
		want     [][2]int
	}{
		{on("cuda", "a", "b", "c"), halo.ModeAuto, false, [][2]int{{0, 1}, {1, 2}}},
		{on("cuda", "a", "b", "c"), halo.ModeDirect, true, [][2]int{{0, 1}, {1, 2}, {2, 0}}},
		{on("cuda", "a", "a", "b", "b"), halo.ModeAuto, false, [][2]int{{1, 2}}},
		{on("cpu", "a", "a", "b", "b"), halo.ModeDirect, true, [][2]int{{1, 2}, {3, 0}}},
		{on("cuda", "a", "a", "a"), halo.ModeNATS, false, [][2]int{{0, 1}, {1, 2}}},
		{on("cuda", "a", "a", "a"), halo.ModeDirect, true, nil},
		{on("cuda", "a", "b"), halo.ModeP2P, false, nil},
		{on("cuda", "a"), halo.ModeNATS, true, nil},
		{on("cpu", "a", "b"), halo.ModeNATS, true, [][2]int{{0, 1}, {1, 0}}},
		{on("cpu", "a", "a"), halo.ModeAuto, true, nil},
		{on("cpu", "", "", ""), halo.ModeAuto, true, [][2]int{{0, 1}, {1, 2}, {2, 0}}},
		{mixed, halo.ModeAuto, false, [][2]int{{0, 1}}},
	} {
		if got := linksToMeasure(roster.GroupsOf(c.members), c.mode, c.periodic); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d ranks, %s, periodic %t: %v, want %v", len(c.members), c.mode, c.periodic, got, c.want)
		}
	}
}

// commsOf joins size ranks at a server of their own.
func commsOf(t *testing.T, size int) []*roster.Comm {
	t.Helper()
	server := rostertest.Start(t, 0)
	comms, errs := make([]*roster.Comm, size), make([]error, size)
	var wg sync.WaitGroup
	for rank := range size {
		conn := wire.Over(server.Dial())
		wg.Go(func() {
			comms[rank], errs[rank] = roster.Join(t.Context(), conn, roster.Member{
				Identity: roster.Identity{RunID: "test", Rank: rank, Size: size, LocalSize: 1}, Version: "v1",
				ConfigHash: "c", Functions: "f", Platform: "p", Host: fmt.Sprint(rank), PID: 1 + rank,
			}, 10*time.Second)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, comm := range comms {
		t.Cleanup(comm.Close)
	}
	return comms
}

// All ranks take what rank 0 chooses, once, by the measurements of all links and sweeps, in the order of ranks.
func TestRanksAgreeOnDepth(t *testing.T) {
	comms := commsOf(t, 3)
	var wg sync.WaitGroup
	for rank, comm := range comms {
		wg.Go(func() {
			got, err := agreeOnDepth(t.Context(), comm, [][2]int{{0, 1}, {1, 2}, {2, 0}}, float64(rank),
				10*time.Second, func(links []linkTime, rates []float64) setup.Depth {
					if !slices.Equal(rates, []float64{0, 1, 2}) {
						t.Errorf("rates %v, want 0, 1 and 2", rates)
					}
					for i, l := range links {
						if l.From != i || l.To != (i+1)%3 || l.Trip <= 0 || l.Large <= 0 || l.Fault != "" {
							t.Errorf("link %d: %+v", i, l)
						}
					}
					return setup.Depth{Rows: 100 + rank, Sweeps: len(links), Why: "because"}
				})
			if want := (setup.Depth{Rows: 100, Sweeps: 3, Why: "because"}); err != nil || got != want {
				t.Errorf("rank %d: %+v, %v, want %+v", rank, got, err, want)
			}
		})
	}
	wg.Wait()
}

// A neighbour that does not answer in time leaves a fault and no error, at both ends.
func TestSilentNeighbourIsNoError(t *testing.T) {
	for _, c := range []struct {
		rank int
		want []linkTime
	}{
		{0, []linkTime{{From: 0, To: 1, Fault: "rank 1 did not answer rank 0 within 50ms"}}},
		{1, nil},
	} {
		got, err := measureLinks(t.Context(), commsOf(t, 2)[c.rank], [][2]int{{0, 1}}, 50*time.Millisecond)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("rank %d: %+v, %v, want %+v", c.rank, got, err, c.want)
		}
	}
}

// A rank whose run ends during the measurement returns the cause.
func TestMeasurementEndsWithTheRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the run is over")
	cancel(cause)
	for rank, comm := range commsOf(t, 2) {
		if _, err := measureLinks(ctx, comm, [][2]int{{0, 1}}, time.Minute); !errors.Is(err, context.Canceled) &&
			!errors.Is(err, cause) {
			t.Errorf("rank %d: %v, want %v", rank, err, cause)
		}
	}
}
