// Package outputs writes what a run leaves behind: the files, the report, and what reads the field meanwhile.
package outputs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/compute/accuracy"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/farfiles"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/trace"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// Options are what the outputs take of a run that is about to begin.
type Options struct {
	Config   configs.Config
	Log      *zap.Logger
	Comm     *roster.Comm
	Conn     pubsub.Conn // nil for a rank alone
	Launched bool        // by a launcher, which then holds output.dir
	Problem  *problem.Problem
	Layout   solver.Layout // of this rank
	Stripes  []solver.Stripe
	Field    solver.Rows // this rank's rows
	Start    int         // iterations that earlier runs have done
	Goal     solver.Goal
	Tracer   *trace.Recorder    // nil without output.trace
	Report   output.Report      // what is known of the run
	Timeout  time.Duration      // of a step in which ranks wait for each other's files
	OnClose  func(func() error) // has what is open closed, the newest first
	// Many says that the run is one of many of a session: no viewer sees it, its report is not published, and its field
	// is hashed only if Hash is set.
	Many, Hash bool
	Stage      bool // the run is one of another run, which wants its results alone
	// Places are where the field is compared with those of coarser meshes; nil where it is not. Meshes waits for their
	// solutions; nil where none are wanted. MeshTime is for how long the run has waited for them before its set-up.
	Places     *Places
	Meshes     func(context.Context) (Meshes, error)
	MeshTime   time.Duration
	Conductors Conductors
	// Correction returns the largest changes that cycles make to this rank's rows. It is nil for a method whose norm
	// tells that.
	Correction func(context.Context) (accuracy.Changes, error)
	// Rounding tells, after cycles of a weighted operator, whether Correction shows what rounding has moved, and else
	// returns what tells that; nil where nothing does.
	Rounding func() (lever *multigrid.Lever, shown bool)
}

// Outputs are what a run writes, and who watches it.
type Outputs struct {
	Options
	id        roster.Identity
	place     output.Place        // where the files of the run go; nil if it writes none
	held      *output.Held        // output.dir, on rank 0 of a run without a launcher; otherwise nil
	files     runFiles            // rank 0 only
	given     bool                // the files are complete, and the place's; rank 0 only
	rows      *output.FieldWriter // this rank's rows of the field; nil if no field is written, or all are
	arrays    []*array            // besides the field
	path      string              // how the rows reach the file, for the report
	outlines  [][4]float64        // of the problem, for pictures and viewers; rank 0 only
	samples   solver.Samples      // what reads the field while the sweeps go on
	viewers   *viewers
	observers []*loop
	series    *series // nil if no series of fields is written
	probes    *probes // nil if no values of points are recorded
	readyAt   time.Time
	trace     *trace.Gathering // nil without output.trace
	fall      accuracy.Fall    // of the norms, on rank 0
	edges     edges
	lacks     map[string]string // see output.RankReport
	values    *placeValues      // of the finished field, on rank 0
	centred   *centred          // Field, of a loose problem; nil of others
}

// Open creates the files, with their space reserved so that a full disk is found before the sweeps, and opens the
// observers. Each rank writes its rows of the field, rank 0 everything else. All ranks call it. The caller ends with
// Abort.
func Open(ctx context.Context, options Options) (*Outputs, error) {
	o := &Outputs{Options: options, id: options.Comm.Self().Identity}
	if options.Layout.Operator.Loose {
		o.centred = &centred{Rows: o.Field, problem: o.Problem}
		o.Field = o.centred
	}
	if err := o.open(ctx); err != nil {
		o.Abort()
		return nil, err
	}
	return o, nil
}

func (o *Outputs) open(ctx context.Context) (err error) {
	ctx, cancel := o.within(ctx)
	defer cancel()
	if err := o.findPlace(); err != nil {
		return err
	}
	if o.id.Rank == 0 {
		if err := o.createFiles(); err != nil {
			return err
		}
	}
	if o.Config.Output.Field != "" {
		if err := o.openFields(ctx); err != nil {
			return err
		}
	}
	if o.Tracer != nil {
		if o.trace, err = trace.Begin(ctx, o.Comm, o.Tracer); err != nil {
			return err
		}
	}
	if o.id.Rank == 0 && (!o.Many || o.Config.Output.Picture != "") {
		if o.outlines, err = o.Problem.Outlines(ctx); err != nil {
			return err
		}
	}
	if o.edges, err = readEdges(o.Problem, o.Layout.Stripe); err != nil {
		return err
	}
	if err := o.Comm.Barrier(ctx, "ready"); err != nil {
		return err
	}
	if err := o.addObservers(); err != nil {
		return err
	}
	o.readyAt = time.Now()
	return nil
}

// within bounds a step in which ranks wait for each other's files.
func (o *Outputs) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return awake.WithTimeout(ctx, o.Timeout)
}

// openRows opens a file for this rank's rows. path says how they reach it.
func (o *Outputs) openRows(t output.Ticket) (w *output.FieldWriter, path string, err error) {
	f, path, err := o.place.Open(t.File)
	if err != nil {
		return nil, "", fmt.Errorf("open field file: %w", err)
	}
	return output.NewFieldWriter(f, t), path, nil
}

// Held returns output.dir on rank 0 of a run without a launcher, and otherwise nil.
func (o *Outputs) Held() *output.Held { return o.held }

// Samples are what reads the field while the sweeps go on.
func (o *Outputs) Samples() solver.Samples {
	if o.centred == nil {
		return o.samples
	}
	all := slices.Clone(o.samples)
	for i := range all {
		all[i].Sampler = centring{all[i].Sampler, o}
	}
	return all
}

// AddNorms takes norms for viewers and, on rank 0, for the history.
func (o *Outputs) AddNorms(norms []float64) error {
	if o.viewers != nil {
		o.viewers.add(norms)
	}
	o.fall.Add(norms)
	if o.files.history == nil {
		return nil
	}
	return o.files.history.Add(norms...)
}

// Path says how the rows of this rank reach the file of the field.
func (o *Outputs) Path() string { return o.path }

// Abort removes incomplete files.
func (o *Outputs) Abort() {
	var err error
	if o.rows != nil {
		err = o.rows.Abandon()
	}
	for _, a := range o.arrays {
		if a.rows != nil {
			err = errors.Join(err, a.rows.Abandon())
		}
	}
	if o.place != nil && o.id.Rank == 0 && !o.given {
		for _, name := range o.Config.Output.Names() {
			err = errors.Join(err, o.place.Remove(name))
		}
	}
	if err != nil {
		o.Log.Sugar().Warnf("remove incomplete outputs: %v", err)
	}
}

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
	stop, err := farfiles.Serve(o.Conn, o.id.RunID, held)
	if err != nil {
		return err
	}
	o.OnClose(func() error { stop(); return nil })
	return nil
}

// runFiles are the files that rank 0 creates. A file that is not written is nil.
type runFiles struct {
	field   *output.Field
	picture output.File
	history *output.History
	report  output.File
	trace   output.File
}

// createFiles creates the files and reserves their maximal sizes.
func (o *Outputs) createFiles() error {
	c, f := o.Config.Output, &o.files
	hx, hy := o.Problem.Spacings()
	room, err := output.RoomFor(o.Config, o.Layout.Mesh, hx, hy, o.id.Size)
	if err != nil {
		return err
	}
	create := func(what, name string, size int64) (f output.File) {
		if name == "" || err != nil {
			return nil
		}
		if f, err = o.place.Create(name, size); err != nil {
			err = fmt.Errorf("create %s: %w", what, err)
		}
		return f
	}
	f.trace = create("trace", c.Trace, room.Trace)
	if c.History != "" && err == nil {
		f.history, err = output.CreateHistory(o.place, c.History, room.History, o.Layout.Norms)
	}
	f.report = create("report", c.Report, room.Report)
	f.picture = create("picture", c.Picture, room.Picture)
	if c.Field != "" && err == nil {
		f.field, err = output.CreateField(o.place, c.Field, o.Layout.Mesh, o.fieldFormat())
	}
	return err
}

// fieldFormat returns the format of the field's file.
func (o *Outputs) fieldFormat() output.Format {
	hx, hy := o.Problem.Spacings()
	c := o.Config.Output
	return output.FieldFormat(c, o.Layout.Mesh, hx, hy, arraysOf(c, o.Problem.Porous())...)
}
