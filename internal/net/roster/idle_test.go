package roster

import (
	"context"
	"fmt"
	"testing"

	"jacobi/internal/net/roster/rostertest"
)

// Collective calls of working ranks leave out the idle ones, which wait for End.
func TestIdleRanksWaitForTheEnd(t *testing.T) {
	comms := joined(t, plain(rostertest.Start(t, 0)), 5)
	together(t, comms, func(ctx context.Context, comm *Comm) error {
		rank := comm.Self().Rank
		comm.SetWorking(2)
		if got := comm.Groups(); comm.Self().Size != 2 || len(comm.Members()) != 2 || got[len(got)-1].End != 2 {
			t.Errorf("rank %d sees %d members in groups %v", rank, len(comm.Members()), got)
		}
		if rank >= 2 {
			data, err := comm.AwaitEnd(ctx, "end")
			if err == nil && string(data) != "done" {
				err = fmt.Errorf("the run ended with %q", data)
			}
			return err
		}
		if err := comm.Send(ctx, 2, "rows", nil); err == nil || err.Error() !=
			`send "rows": rank 2 is not another rank of a run of 2` {
			t.Errorf("rank %d sends to an idle rank: %v", rank, err)
		}
		all, err := comm.Gather(ctx, "parts", []byte{byte(rank)})
		if err == nil && rank == 0 && len(all) != 2 {
			t.Errorf("%d parts", len(all))
		}
		if err == nil {
			err = comm.Barrier(ctx, "end")
		}
		if err == nil {
			err = comm.End(ctx, "end", []byte("done"))
		}
		return err
	})
}
