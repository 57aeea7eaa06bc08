package view

import "jacobi/solver"

// gathering puts the frame of a window together from the rows of all ranks.
type gathering struct {
	sample uint64
	frame  *Frame
	have   []bool // by row
	left   int    // rows that are missing
}

// add adds rows of the same window. It returns the frame when it is complete. Rows of an older sample are dropped, and
// those of a newer one begin a new frame.
func (g *gathering) add(r Rows) *Frame {
	if r.Sample < g.sample {
		return nil
	}
	d := solver.DType(r.Bytes)
	if r.Sample > g.sample || g.frame == nil {
		*g = gathering{sample: r.Sample, have: make([]bool, r.Rows), left: r.Rows,
			frame: &Frame{Window: r.Window, Sweeps: r.Sweeps, DType: d, Values: make([]float64, r.Cols*r.Rows)}}
	}
	if g.left == 0 || d != g.frame.DType || r.Sweeps != g.frame.Sweeps {
		return nil
	}
	for i, at := range r.At {
		if g.have[at] {
			continue // a duplicate
		}
		g.have[at] = true
		g.left--
		row := r.Cols * r.Bytes
		d.Decode(g.frame.Values[at*r.Cols:(at+1)*r.Cols], r.Values[i*row:(i+1)*row])
	}
	if g.left > 0 {
		return nil
	}
	return g.frame
}
