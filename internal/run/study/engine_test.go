package study

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/run/desk"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

// told notes what Done was given.
func told(e *Engine) *[]string {
	all := []string{}
	e.Done = func(j Job, r Result) error {
		all = append(all, fmt.Sprint(j.ID, r.Refused, r.Failed))
		return nil
	}
	return &all
}

// Ranks answer in any order, and results are passed on in the order of the jobs.
func TestResultsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	e := &Engine{}
	all := told(e)
	e.open = []*ordered{{Job: Job{ID: 1}, number: 1, rank: 0}, {Job: Job{ID: 2}, number: 2, rank: 1},
		{Job: Job{ID: 3}, result: &Result{Refused: "-no"}}, {Job: Job{ID: 4}, number: 3, rank: everyone}}
	for _, c := range []struct {
		rank, number, by int
		ok               bool
		want             []string
	}{
		{0, 2, 0, false, nil}, // the job is that of rank 1
		{1, 2, 1, true, nil},
		{1, 2, 1, false, nil}, // again
		{1, 3, 1, false, nil}, // rank 0 answers for all
		{0, 3, everyone, true, nil},
		{0, 1, 0, true, []string{"1-x", "2-x", "3-no", "4-x"}},
	} {
		by, ok := e.answered(c.rank, desk.Answer{Number: c.number, Failed: "-x"})
		if by != c.by || ok != c.ok || !slices.Equal(*all, c.want) {
			t.Errorf("answer %d of rank %d: by %d, %v, %v; want %d, %v, %v", c.number, c.rank, by, ok, *all, c.by, c.ok,
				c.want)
		}
	}
}

// A rank that dies takes the job with it that it was at. Before a restart the others keep their order, and are done
// again where they have no result. Without a restart no result is lost.
func TestDeadRankIsBlamedForItsJob(t *testing.T) {
	t.Parallel()
	died := &launch.RankError{Rank: 1, Host: "h", Text: "was killed", Died: true}
	other := errors.New("the server is gone")
	todo := func(id, number, rank int) ordered { return ordered{Job: Job{ID: id}, number: number, rank: rank} }
	done := func(id, number, rank int) ordered {
		j := todo(id, number, rank)
		j.result = &Result{Refused: "-done"}
		return j
	}
	for _, c := range []struct {
		open    []ordered
		err     error
		restart []string // what Done has been given before a restart
		end     []string // without a restart
		again   []int
	}{
		{[]ordered{todo(1, 1, 0), todo(2, 2, 1), todo(3, 3, 1), done(4, 4, 0)}, died, nil,
			[]string{"2" + died.Error(), "4-done"}, []int{1, 3}},
		{[]ordered{todo(1, 1, 1), done(2, 2, 0), todo(3, 3, 1), done(4, 4, 0)}, died,
			[]string{"1" + died.Error(), "2-done"}, []string{"1" + died.Error(), "2-done", "4-done"}, []int{3}},
		{[]ordered{done(1, 1, 0), todo(2, 2, everyone)}, died,
			[]string{"1-done", "2" + died.Error()}, []string{"1-done", "2" + died.Error()}, nil},
		{[]ordered{todo(1, 1, 0), todo(2, 0, everyone)}, died, nil, nil, []int{1, 2}},
		{[]ordered{todo(1, 1, 0), todo(2, 2, 1)}, other, []string{"1" + other.Error()},
			[]string{"1" + other.Error()}, []int{2}},
		{[]ordered{todo(1, 1, 0)}, nil, nil, nil, []int{1}},
	} {
		for _, restart := range []bool{false, true} {
			e := &Engine{drained: true}
			for _, j := range c.open {
				e.open = append(e.open, &j)
			}
			all := told(e)
			e.blame(c.err)
			if err := e.settle(restart); err != nil {
				t.Fatal(err)
			}
			var again []int
			for _, j := range e.again {
				again = append(again, j.ID)
			}
			want := c.end
			if restart {
				want = c.restart
			}
			if !slices.Equal(*all, want) || !slices.Equal(again, c.again) || e.Complete() != (c.again == nil) {
				t.Errorf("%v, restart %v: told %q, again %v, complete %v; want %q, %v", c.err, restart, *all, again,
					e.Complete(), want, c.again)
			}
			for _, j := range e.open {
				if j.number != 0 {
					t.Errorf("%v, restart %v: job %d has the order %d", c.err, restart, j.ID, j.number)
				}
			}
		}
	}
}

// A small job goes to the rank with the fewest orders, and a large one to all when all have room.
func TestJobsAreDivided(t *testing.T) {
	t.Parallel()
	e := &Engine{Alone: 1000}
	for _, c := range []struct {
		method string
		nx, ny int
		want   bool
	}{{"multigrid", 40, 25, true}, {"multigrid", 7, 143, false}, {"jacobi", 9, 9, false}} {
		job := configs.Default()
		job.Solver.Method, job.Grid.NX, job.Grid.NY = c.method, c.nx, c.ny
		if got := e.alone(job); got != c.want {
			t.Errorf("%v: %v", c, got)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		busy  []int
		alone bool
		rank  int
		ok    bool
	}{
		{[]int{1, 0, 0}, true, 1, true}, {[]int{0, 0, 0}, true, 0, true}, {[]int{2, 1, 2}, true, 1, true},
		{[]int{2, 2, 2}, true, 0, false}, {[]int{1, 0, 1}, false, everyone, true},
		{[]int{0, 2, 0}, false, everyone, false},
	} {
		pool := &pool{busy: slices.Clone(c.busy), changed: make(chan struct{}, 1)}
		if rank, ok := pool.choose(ended, c.alone); rank != c.rank || ok != c.ok {
			t.Errorf("%v: rank %d, %v; want %d, %v", c.busy, rank, ok, c.rank, c.ok)
		}
	}
	pool := &pool{busy: []int{2, 2}, changed: make(chan struct{}, 1)}
	pool.add(everyone, -1)
	pool.add(1, 1)
	if want := []int{1, 2}; !slices.Equal(pool.busy, want) {
		t.Errorf("orders %v, want %v", pool.busy, want)
	}
}

// A signal may reach rank 1 long before rank 0, which tells the launcher how the ranks have ended: the order to end
// says that they were stopped.
func TestStopOfOneRankStopsAll(t *testing.T) {
	t.Parallel()
	srv := rostertest.Start(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	e := &Engine{Next: func(ctx context.Context) (Job, bool, error) {
		<-ctx.Done()
		return Job{}, false, context.Cause(ctx)
	}}
	p := &plan.Plan{Places: hosts.Places{Placements: launch.OneHost("here", 2)}}
	stop, err := e.attend(ctx, p, wire.Over(srv.Dial()), "run")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var ranks [2]*desk.Desk
	for rank := range ranks {
		if ranks[rank], err = desk.AtRank(ctx, wire.Over(srv.Dial()), "run", rank); err != nil {
			t.Fatal(err)
		}
		defer ranks[rank].Close()
		if err := ranks[rank].Send(ctx, desk.Answer{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := ranks[1].Send(ctx, desk.Answer{Stop: true}); err != nil {
		t.Fatal(err)
	}
	for rank, d := range ranks {
		var o desk.Order
		if err := d.Recv(ctx, &o); err != nil || !o.End || !o.Stopped {
			t.Errorf("rank %d: %+v, %v; want the end of ranks that were stopped", rank, o, err)
		}
	}
}

// A job that is not wanted any more is refused with the reason while no rank has it. Ranks that have it are asked to
// stop, also if it was ordered again after a restart.
func TestJobsThatNobodyWants(t *testing.T) {
	t.Parallel()
	srv := rostertest.Start(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	start := configs.Default()
	start.Run.Ranks = 1
	start, err := StartConfig(start)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Make(ctx, start, hosts.Where{MapBy: "slot"}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{Warn: func(Job, string) {}}
	told, jobs := make(chan string, 4), make(chan Job)
	e.Done = func(j Job, r Result) error {
		told <- fmt.Sprint(j.ID, r.Refused, r.Failed)
		return nil
	}
	e.Next = func(ctx context.Context) (Job, bool, error) {
		select {
		case j := <-jobs:
			return j, true, nil
		case <-ctx.Done():
			return Job{}, false, context.Cause(ctx)
		}
	}
	nobody := errors.New("-nobody waits")
	unwanted, leave := context.WithCancelCause(ctx)
	leave(nobody)
	wanted, drop := context.WithCancelCause(ctx)
	defer drop(nil)
	for _, runID := range []string{"first", "second"} {
		stops, far := make(chan string, 4), wire.Over(srv.Dial())
		if _, err := far.Subscribe("jacobi."+runID+".stop", func(m pubsub.Message) {
			stops <- string(m.Data)
		}); err != nil {
			t.Fatal(err)
		}
		stop, err := e.attend(ctx, p, wire.Over(srv.Dial()), runID)
		if err != nil {
			t.Fatal(err)
		}
		rank, err := desk.AtRank(ctx, far, runID, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := rank.Send(ctx, desk.Answer{}); err != nil {
			t.Fatal(err)
		}
		if runID == "first" {
			jobs <- Job{ID: 1, Config: start, Wanted: unwanted}
			if got := <-told; got != "1-nobody waits" {
				t.Errorf("a job that nobody wants: %s", got)
			}
			jobs <- Job{ID: 2, Config: start, Wanted: wanted}
		}
		var o desk.Order
		if err := rank.Recv(ctx, &o); err != nil || o.Number != 1 {
			t.Fatalf("%+v, %v; want order 1", o, err)
		}
		if runID == "second" {
			drop(nobody)
			if got := <-stops; got != "1" {
				t.Errorf("stop of run %q, want 1", got)
			}
			if err := rank.Send(ctx, desk.Answer{Number: 1, Failed: "-stopped"}); err != nil {
				t.Fatal(err)
			}
			if got := <-told; got != "2-stopped" {
				t.Errorf("a job that was cancelled: %s", got)
			}
		}
		stop()
		rank.Close()
		if err := e.settle(true); err != nil {
			t.Fatal(err)
		}
	}
}
