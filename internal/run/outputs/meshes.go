package outputs

import (
	"context"
	"math"
	"time"

	"jacobi/internal/compute/results"
	"jacobi/internal/compute/richardson"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/trace"
)

// Meshes are the solutions of a problem on coarser meshes, from which the mesh's own error follows.
type Meshes struct {
	Coarser []Solved      // the finest first
	Why     string        // why there is none
	Time    time.Duration // for which the outputs have waited for them
}

// Solved is a solution on a coarser mesh. It is empty on all ranks but rank 0.
type Solved struct {
	Mesh   output.MeshReport
	Report *output.Report
	Values *placeValues // at Options.Places
}

// Values returns the values of the finished field at Options.Places, on rank 0.
func (o *Outputs) Values() *placeValues { return o.values }

// awaitMeshes waits for the solutions on coarser meshes. All ranks call it.
func (o *Outputs) awaitMeshes(ctx context.Context) (m Meshes, err error) {
	if o.Meshes == nil {
		return m, nil
	}
	defer o.Tracer.Phase(trace.PhaseMeshes, time.Now())
	return o.Meshes(ctx)
}

// stateMeshError enters in the report of a run what the mesh leaves of errors in the field, the results and the probes.
func (o *Outputs) stateMeshError(r *output.Report, m Meshes) {
	own := r.Results
	switch {
	case r.Accuracy == nil || own == nil:
		return
	case m.Why != "":
		r.Accuracy.Mesh = &output.MeshErrorReport{Why: m.Why}
		return
	case len(m.Coarser) == 0:
		return
	}
	rep := &output.MeshErrorReport{}
	r.Accuracy.Mesh = rep
	fields := []*placeValues{o.values}
	for _, c := range m.Coarser {
		fields = append(fields, c.Values)
		rep.Meshes = append(rep.Meshes, [2]int{c.Mesh.NX, c.Mesh.NY})
		if c.Report.Results == nil {
			rep.Why = "the coarser meshes have no results"
			return
		}
	}
	ratio := float64(r.Mesh.NX-1) / float64(m.Coarser[0].Mesh.NX-1)
	var quarter *results.Results
	if len(m.Coarser) > 1 {
		quarter = m.Coarser[1].Report.Results
	}
	differences := append(largestDifferences(fields), math.NaN())
	about := richardson.OfDifferences(differences[0], differences[1], ratio)
	rep.Error, rep.Differs = &about, differences[0]
	own.Errors = results.Compare(own, m.Coarser[0].Report.Results, quarter, ratio)
	own.Errors.Min, own.Errors.Max = errorsOfExtremes(fields, ratio)
	hx, hy := o.Problem.Spacings()
	o.Places.eachProbed(hx, hy, func(place int, probe string) {
		if r.ProbeErrors == nil {
			r.ProbeErrors = output.Probed{}
		}
		var v []float64
		for _, f := range fields {
			v = append(v, f.values[place])
		}
		r.ProbeErrors[probe] = append(r.ProbeErrors[probe], errorOf(v, ratio))
	})
}

// errorOf returns what the mesh leaves of an error in a value, by those on two or three meshes; nil if it is no number.
func errorOf(v []float64, ratio float64) *float64 {
	v = append(v, math.NaN())
	if e := richardson.Error(v[0], v[1], v[2], ratio); !math.IsNaN(e) && !math.IsInf(e, 0) {
		return &e
	}
	return nil
}

// errorsOfExtremes returns what the mesh leaves of errors in the least and the largest value. They are compared at the
// places that all meshes have: those of the meshes themselves lie at other points.
func errorsOfExtremes(fields []*placeValues, ratio float64) (least, most *float64) {
	var low, high []float64
	for _, f := range fields {
		l, h := math.Inf(1), math.Inf(-1)
		for _, v := range f.values {
			if !math.IsNaN(v) {
				l, h = min(l, v), max(h, v)
			}
		}
		low, high = append(low, l), append(high, h)
	}
	return errorOf(low, ratio), errorOf(high, ratio)
}

// Conductors are what solutions for single regions have given.
type Conductors struct {
	Matrix *results.Matrix // nil where none is wanted
	Why    string          // why there is none
	Time   time.Duration
}

// stateMatrix enters the matrix of the regions in the report, or why there is none.
func (o *Outputs) stateMatrix(r *output.Report) {
	switch c := o.Conductors; {
	case c.Why != "":
		r.Missing = append(r.Missing, output.FileFault{Name: "output.matrix", Error: c.Why})
	case r.Results != nil:
		r.Results.Matrix = c.Matrix
	}
}
