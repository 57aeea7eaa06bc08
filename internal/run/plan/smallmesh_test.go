package plan

import (
	"slices"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/device"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// A warning names one GPU where it sweeps a small mesh clearly faster than all.
func TestSmallMeshOnGPUs(t *testing.T) {
	const four = "one GPU would be about 1.4 times as fast as 4: it sweeps 1024 x 1024 points in about 1.3µs, and " +
		"several GPUs need 2µs for a sweep of any mesh; use -np 1"
	const eight = "one GPU would be about 2.0 times as fast as 8: it sweeps 2048 x 2048 points in about 2.5µs, and " +
		"several GPUs need 5.1µs for a sweep of any mesh; use -np 1"
	for _, c := range []struct {
		gpus, ranks, points int
		dtype               solver.DType
		method              string
		want                string
	}{
		{4, 4, 1024, solver.Float32, "jacobi", four},
		{4, 4, 1024, solver.Float64, "jacobi", ""}, // 1.7 us on one: 16% less is not clear
		{4, 4, 2048, solver.Float32, "jacobi", ""},
		{8, 8, 2048, solver.Float32, "jacobi", eight},
		{1, 4, 1024, solver.Float32, "jacobi", ""},
		{0, 4, 1024, solver.Float32, "jacobi", ""},
		{4, 4, 1024, solver.Float32, "multigrid", ""},
	} {
		cfg := configs.Default()
		cfg.Solver.Method = c.method
		at, err := hosts.OnThisHost(c.ranks)
		if err != nil {
			t.Fatal(err)
		}
		mesh := solver.Mesh{NX: c.points, NY: c.points, DType: c.dtype}
		p := &Plan{Config: cfg, Places: at, Setup: &setup.Setup{Options: setup.Options{Mesh: mesh}}}
		for r := range c.ranks {
			if c.gpus > 0 {
				p.Choices = append(p.Choices, &device.Choice{Candidate: device.Candidate{Index: r % c.gpus}})
			}
		}
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if got := p.smallForGPUs(); !slices.Equal(got, want) {
			t.Errorf("%d GPUs, %d x %d %v, %s:\n%q, want\n%q", c.gpus, c.points, c.points, c.dtype, c.method, got, want)
		}
	}
}
