package configs

import (
	"maps"
	"testing"
	"time"
)

func TestInterval(t *testing.T) {
	for text, want := range map[string]Interval{
		"1": {Iterations: 1}, "1 sweep": {Iterations: 1, Unit: "sweeps"},
		"100 sweeps": {Iterations: 100, Unit: "sweeps"},
		"1 cycle":    {Iterations: 1, Unit: "cycles"}, "5 cycles": {Iterations: 5, Unit: "cycles"},
		"10m":  {Time: 10 * time.Minute},
		"1.5s": {Time: 1500 * time.Millisecond}, "": {},
	} {
		c, err := Load(Options{Set: []string{"checkpoint.every=" + text}})
		again, e := Load(Options{Set: []string{"checkpoint.every=" + want.String()}})
		if err != nil || e != nil || c.Checkpoint.Every != want || again.Checkpoint.Every != want ||
			c.Checkpoint.On() != (text != "") {
			t.Errorf("%q: %+v, %v", text, c.Checkpoint, err)
		}
	}
	for _, c := range []struct{ file, text string }{{"run.yaml", "checkpoint: {every: 100}"},
		{"run.toml", "[checkpoint]\nevery = 100\n"}, {"run.json", `{"checkpoint": {"every": "100"}}`}} {
		got, err := mergeConfig(Options{File: c.file}, []byte(c.text))
		if err != nil || got.Checkpoint.Every != (Interval{Iterations: 100}) {
			t.Errorf("%s: %+v, %v", c.file, got.Checkpoint, err)
		}
	}
}

// A value chosen by the preset counts like one in the file. Keys that only say when a run ends, or how it is computed,
// do not count.
func TestFieldKeys(t *testing.T) {
	base, err := FieldKeys(Default())
	if err != nil {
		t.Fatal(err)
	}
	c := Default()
	c.Solver.Tolerance, c.Solver.MaxIterations, c.Run.Ranks, c.Halo.Depth, c.Device.Backend = 1, 5, 9, 3, "cpu"
	c.Problem, err = c.Problem.Resolve(c.Grid.DType)
	if err != nil {
		t.Fatal(err)
	}
	c.Problem.Preset = "dirichlet"
	if same, err := FieldKeys(c); err != nil || !maps.Equal(same, base) {
		t.Errorf("%v, want %v, %v", same, base, err)
	}
	want := map[string]string{
		"grid.nx": "16384", "grid.ny": "16384", "grid.dtype": "float32", "grid.width": "1", "grid.height": "auto",
		"problem.source": "0", "problem.fixed": "false", "problem.drawing": "",
		"problem.colours": "", "problem.regions": "",
		"problem.coefficient": "1", "problem.screening": "0", "problem.top": "periodic",
		"problem.bottom": "periodic", "problem.initial": "0",
		"problem.left": "sin(2 * float32(pi) * iy / (ny - 1))", "problem.right": "sin(2 * float32(pi) * iy / (ny - 1))",
	}
	if !maps.Equal(base, want) {
		t.Errorf("%v, want %v", base, want)
	}
}

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		checkpoint               Checkpoint
		place, directory, bucket string
	}{{Checkpoint{Dir: "a/b"}, "a/b", "a/b", ""}, {Checkpoint{NATS: "b"}, "nats:b", "", "b"},
		{Checkpoint{}, "", "", ""}} {
		dir, bucket := SplitPlace(c.checkpoint.Place())
		if c.checkpoint.Place() != c.place || dir != c.directory || bucket != c.bucket {
			t.Errorf("%+v: %q, %q, %q", c.checkpoint, c.checkpoint.Place(), dir, bucket)
		}
	}
}
