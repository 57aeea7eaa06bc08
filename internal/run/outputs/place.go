package outputs

import (
	"errors"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/observe/farfiles"
	"jacobi/internal/observe/output"
)

// outputPlace is where the files of a run go. It is empty if the run writes none.
type outputPlace struct {
	output.Place                 // where rank 0 creates the files
	held         *output.Held    // output.dir, on rank 0 of a run without a launcher; otherwise nil
	far          *farfiles.Place // output.dir, if another process holds it; otherwise nil
}

// findPlace determines where the files go. The launcher holds output.dir; without a launcher rank 0 does. A rank that
// sees that directory writes to it directly, any other rank writes over NATS.
func (o *Outputs) findPlace() (outputPlace, error) {
	c := o.Config.Output
	if o.Many {
		c.Probes = "" // their values are in the report
	}
	if len(c.Names()) == 0 {
		return outputPlace{}, nil
	}
	if o.id.Rank == 0 && !o.Launched {
		held, err := o.hold(c)
		if err != nil {
			return outputPlace{}, err
		}
		place := outputPlace{Place: held, held: held}
		if o.Conn == nil {
			return place, nil
		}
		serve := farfiles.Options{Conn: o.Conn, RunID: o.id.RunID, Dir: held, Output: c, Log: o.Log}
		stop, err := farfiles.Serve(serve)
		if err != nil {
			return outputPlace{}, err
		}
		o.OnClose(func() error { stop(); return nil })
		return place, nil
	}
	far, err := farfiles.Find(o.Comm.Context(), o.Conn, o.id.RunID, o.Timeout)
	if err != nil {
		return outputPlace{}, err
	}
	if o.id.Rank == 0 && !far.See(c.Dir) {
		o.Log.Info("outputs go over NATS", zap.String("to", far.Host()))
	}
	return outputPlace{Place: far, far: far}, nil
}

// hold locks output.dir for this run.
func (o *Outputs) hold(c configs.Output) (*output.Held, error) {
	if err := errors.Join(output.CheckDir(c.Dir), output.CheckNames(c)); err != nil {
		return nil, err
	}
	held, notes, err := output.Hold(c.Dir, o.id.RunID)
	if err != nil {
		return nil, err
	}
	o.OnClose(held.Close)
	for _, note := range append(notes, held.Replace(c)) {
		if note != "" {
			o.Log.Info(note)
		}
	}
	return held, nil
}
