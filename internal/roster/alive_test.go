package roster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/roster/rostertest"
)

// A rank that falls silent is found out by all others, which say who it was, where, how far and since when.
func TestSilentRankIsNoticedByAll(t *testing.T) {
	for _, silent := range []int{0, 2} {
		t.Run(fmt.Sprint(silent), func(t *testing.T) {
			teams := joined(t, plain(rostertest.Start(t, 0)), 4)
			for _, team := range teams {
				team.SetSweeps(100 + team.Self().Rank)
				if err := team.KeepAlive(time.Second); err != nil {
					t.Fatal(err)
				}
			}
			teams[silent].Close() // it neither speaks nor listens any more
			want := fmt.Sprintf("rank %d on host%d was not heard of for 1s, since ", silent, silent)
			for _, team := range teams {
				if team.Self().Rank == silent {
					continue
				}
				select {
				case <-team.Context().Done():
				case <-time.After(time.Minute):
					t.Fatalf("rank %d does not notice", team.Self().Rank)
				}
				// Who found it out has the error itself, who was told an abort that holds its text.
				if cause := context.Cause(team.Context()); !IsConsequence(cause) || !strings.Contains(cause.Error(), want) {
					t.Errorf("rank %d ends with %v, want %s", team.Self().Rank, cause, want)
				}
			}
		})
	}
}

// Silence is counted in ticks of the own clock: a rank that was stopped itself, however long, blames nobody who spoke meanwhile.
func TestOwnPauseIsNobodysSilence(t *testing.T) {
	team := &Team{self: member(1, 3), members: all(3), conn: &nats.Conn{}}
	w := &watch{team: team, limit: time.Minute, heard: map[int]*sign{0: {at: time.Now().Add(-time.Hour)}}}
	for i := range beatsPerLimit {
		if err := w.silent(); err != nil {
			t.Fatalf("tick %d: %v", i, err)
		}
	}
	w.hear(&nats.Msg{Data: []byte(`{"rank": 2, "sweeps": 9}`)}) // of one that is not watched
	w.hear(&nats.Msg{Data: []byte(`nonsense`)})
	w.hear(&nats.Msg{Data: []byte(`{"rank": 0, "sweeps": 7}`)})
	for i := range beatsPerLimit {
		if err := w.silent(); err != nil {
			t.Fatalf("tick %d after a sign: %v", i, err)
		}
	}
	err := error(w.silent())
	s, ok := errors.AsType[*SilentError](err)
	if !ok || s.Rank != 0 || s.Sweeps != 7 || !s.CutOff || time.Since(s.Since) > 30*time.Second {
		t.Fatalf("%#v", err)
	}
	want := "rank 0 on host0 was not heard of for 1m0s, since " + s.Since.Format(time.TimeOnly) + ", when it had done 7 sweeps: this rank is cut off from the NATS server"
	if err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
