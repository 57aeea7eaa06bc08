package probes

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

const nx = 66

// plane is a field with the value ix + 100 iy at a point.
type plane struct{}

func (plane) Row(iy int, dst []byte) error {
	for ix := range nx {
		binary.LittleEndian.PutUint64(dst[8*ix:], math.Float64bits(float64(ix+100*iy)))
	}
	return nil
}

func (p plane) CopyRows(_ context.Context, s solver.Stripe, dst []byte) error {
	for iy := s.Lo; iy < s.Hi; iy++ {
		_ = p.Row(iy, dst[8*nx*(iy-s.Lo):])
	}
	return nil
}

// failing is a place whose file of probes cannot be created at first.
type failing struct {
	output.Place
	fault error
}

func (f *failing) GrowProbes(before int) (output.File, int64, error) {
	if err := f.fault; err != nil {
		f.fault = nil
		return nil, 0, err
	}
	return f.Place.GrowProbes(before)
}

// The file has the values of points in the middle, on the boundary and along a line. Values that cannot be written are
// a warning, and the next ones are written.
func TestProbesOfARankAlone(t *testing.T) {
	comm, err := roster.Join(t.Context(), nil, roster.Member{Identity: roster.Identity{RunID: "test", Size: 1,
		LocalSize: 1}}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer comm.Close()
	dir := t.TempDir()
	c := configs.Output{Dir: dir, Probes: "a=[3,5]; corner=[65,97]; cut=[10,0]..[10,2]/3",
		ProbesEvery: configs.Interval{Sweeps: 10}}
	held, _, err := output.Hold(c, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	core, logs := observer.New(zap.WarnLevel)
	mesh := solver.Mesh{NX: nx, NY: 98, DType: solver.Float64}
	p, err := New(Options{Comm: comm, Log: zap.New(core), Place: &failing{held, errors.New("disk full")},
		Output: c, View: output.View{Mesh: mesh, Stripe: mesh.Interior(), Rows: plane{}, Initial: plane{}},
		HX: 0.5, HY: 0.25, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for sweeps := 10; sweeps <= 30; sweeps += 10 {
		if err := p.Sample(t.Context(), solver.Sample{Sweeps: sweeps}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Finish(t.Context(), solver.Result{}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, configs.ProbesFile))
	want := "iteration,probe,ix,iy,x,y,value\n"
	for _, sweeps := range []string{"20", "30"} {
		want += sweeps + ",a,3,5,1.5,1.25,503\n" + sweeps + ",corner,65,97,32.5,24.25,9765\n" +
			sweeps + ",cut,10,0,5,0,10\n" + sweeps + ",cut,10,1,5,0.25,110\n" + sweeps + ",cut,10,2,5,0.5,210\n"
	}
	if err != nil || string(got) != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
	if r := *p.Report(); r != (output.ProbesReport{Every: 10, Points: 5, Samples: 2}) {
		t.Errorf("report %+v", r)
	}
	warning := configs.ProbesFile + ": values are not written, the run goes on: disk full"
	if all := logs.All(); len(all) != 1 || all[0].Message != warning {
		t.Errorf("logged %v, want %q", all, warning)
	}
}
