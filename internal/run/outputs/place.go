package outputs

import (
	"errors"

	"jacobi/internal/observe/farfiles"
	"jacobi/internal/observe/output"
)

// findPlace determines where the files go. The launcher holds output.dir; without a launcher rank 0 does. A rank that
// sees that directory writes to it directly, any other rank writes over NATS.
func (o *Outputs) findPlace() error {
	c := o.Config.Output
	if o.Many {
		c.Probes = "" // their values are in the report
	}
	if len(c.Names()) == 0 {
		return nil
	}
	if o.id.Rank == 0 && !o.Launched {
		return o.hold()
	}
	far, err := farfiles.Find(o.Comm.Context(), o.Conn, o.id.RunID, c.Dir, o.Timeout)
	if err == nil {
		o.place = far
	}
	return err
}

// hold locks output.dir for this run, and lets the other ranks write there.
func (o *Outputs) hold() error {
	c := o.Config.Output
	if err := errors.Join(output.CheckDir(c.Dir), output.CheckNames(c)); err != nil {
		return err
	}
	held, notes, err := output.Hold(c, o.id.RunID)
	if err != nil {
		return err
	}
	o.held, o.place = held, held
	o.OnClose(held.Close)
	for _, note := range append(notes, held.Replace()) {
		if note != "" {
			o.Log.Info(note)
		}
	}
	if o.Conn == nil {
		return nil
	}
	stop, err := farfiles.Serve(farfiles.Options{Conn: o.Conn, RunID: o.id.RunID, Dir: held, Log: o.Log})
	if err != nil {
		return err
	}
	o.OnClose(func() error { stop(); return nil })
	return nil
}
