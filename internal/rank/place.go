package rank

import (
	"errors"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/farfiles"
	"jacobi/internal/output"
)

// outputPlace is where the files of a run go. It is empty if the run writes none.
type outputPlace struct {
	output.Place                 // where rank 0 creates the files
	held         *output.Held    // output.dir, on rank 0 of a run without a launcher; otherwise nil
	far          *farfiles.Place // output.dir, if another process holds it; otherwise nil
}

// findPlace determines where the files go. The launcher holds output.dir; without a launcher rank 0 does. A rank that
// sees that directory writes to it directly, any other rank writes over NATS.
func (j *joined) findPlace(open *closers) (outputPlace, error) {
	c := j.Config.Output
	if len(c.Names()) == 0 {
		return outputPlace{}, nil
	}
	if j.id.Rank == 0 && !j.launched() {
		held, err := j.hold(c, open)
		if err != nil {
			return outputPlace{}, err
		}
		place := outputPlace{Place: held, held: held}
		if j.alone() {
			return place, nil
		}
		serve := farfiles.Options{Conn: j.conn, RunID: j.id.RunID, Dir: held, Output: c, Log: j.Log}
		stop, err := farfiles.Serve(serve)
		if err != nil {
			return outputPlace{}, err
		}
		open.add(func() error { stop(); return nil })
		return place, nil
	}
	far, err := farfiles.Find(j.team.Context(), j.conn, j.id.RunID, j.fileTimeout())
	if err != nil {
		return outputPlace{}, err
	}
	if j.id.Rank == 0 && !far.See(c.Dir) {
		j.Log.Info("outputs go over NATS", zap.String("to", far.Host()))
	}
	return outputPlace{Place: far, far: far}, nil
}

// hold locks output.dir for this run.
func (j *joined) hold(c configs.Output, open *closers) (*output.Held, error) {
	if err := errors.Join(output.CheckDir(c.Dir), output.CheckNames(c)); err != nil {
		return nil, err
	}
	held, notes, err := output.Hold(c.Dir, j.id.RunID)
	if err != nil {
		return nil, err
	}
	open.add(held.Close)
	for _, note := range notes {
		j.Log.Info(note)
	}
	return held, nil
}
