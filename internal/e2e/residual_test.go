package e2e

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// The residual of the report is that of the five-point equations for the field of the file, as PETSc and hypre have it:
// b has the source and the values of the sides.
func TestResidualIsThatOfTheEquations(t *testing.T) {
	t.Parallel()
	const nx, ny, width, k2 = 33, 49, 2.0, 3.0
	const hx, hy = width / (nx - 1), width / (nx - 1) / 2
	dir := t.TempDir()
	out := runNatural(t, dir, "launcher", append(set("grid.nx=33", "grid.ny=49", "grid.width=2", "grid.height=1.5",
		"problem.source=5", "problem.preset=dirichlet", "problem.screening=3",
		"solver.relative_tolerance=1e-3"), "-np", "2")...)
	if out.code != 0 || !strings.Contains(out.stdout, "  Residual       |b - Au|/|b| = ") {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	u := readField(t, filepath.Join(dir, "out", "field.npy"), nx, ny)
	at := func(u []float64, ix, iy int) float64 { return u[iy*nx+ix] }
	defect := func(u []float64) float64 {
		var sum float64
		for iy := 1; iy < ny-1; iy++ {
			for ix := 1; ix < nx-1; ix++ {
				c := at(u, ix, iy)
				r := 5 + (at(u, ix-1, iy)-2*c+at(u, ix+1, iy))/(hx*hx) +
					(at(u, ix, iy-1)-2*c+at(u, ix, iy+1))/(hy*hy) - k2*c
				sum += r * r
			}
		}
		return math.Sqrt(sum)
	}
	data := make([]float64, nx*ny) // 0 where sweeps update: its defect is b
	copy(data, u[:nx])
	norm := defect(u)
	r := readReport(t, filepath.Join(dir, "out")).Residual
	if r == nil || math.Abs(r.Norm/norm-1) > 1e-6 || math.Abs(r.Relative/(norm/defect(data))-1) > 1e-6 {
		t.Errorf("residual %+v, want %g and %g", r, norm, norm/defect(data))
	}
}
