package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/sbinet/npyio"

	"jacobi/internal/base/ballast"
	"jacobi/internal/compute/elementary"
	"jacobi/solver"
)

// readField reads the whole mesh of a float64 run.
func readField(t *testing.T, path string, nx, ny int) []float64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := npyio.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if shape := r.Header.Descr.Shape; len(shape) != 2 || shape[0] != ny || shape[1] != nx || r.Header.Descr.Fortran {
		t.Fatalf("field.npy: %v, want C order and shape (%d, %d)", r.Header.Descr, ny, nx)
	}
	var values []float64
	if r.Header.Descr.Type == "<f4" {
		var narrow []float32
		err = r.Read(&narrow)
		for _, v := range narrow {
			values = append(values, float64(v))
		}
	} else {
		err = r.Read(&values)
	}
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// With zero sides, sin(pi x) sin(pi y) is an eigenvector of the sweep. Each sweep multiplies field and norm by the
// eigenvalue (cos(pi/(nx-1)) + cos(pi/(ny-1))) / 2.
func TestEigenmodeDecaysByItsEigenvalue(t *testing.T) {
	t.Parallel()
	const nx, ny, sweeps = 65, 49, 200
	dir := t.TempDir()
	out := run(t, dir, "launcher", append(set(fmt.Sprintf("grid.nx=%d", nx), fmt.Sprintf("grid.ny=%d", ny),
		"grid.dtype=float64",
		"problem.preset=dirichlet", "problem.top=0", "problem.initial=sin(pi*x)*sin(pi*y)",
		fmt.Sprintf("solver.max_iterations=%d", sweeps), "halo.depth=3", "solver.tolerance=0"), "-np", "3")...)
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	eigenvalue := (math.Cos(math.Pi/(nx-1)) + math.Cos(math.Pi/(ny-1))) / 2
	history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
	if err != nil {
		t.Fatal(err)
	}
	norms := normsOf(t, string(history))
	if len(norms) != sweeps {
		t.Fatalf("%d norms, want %d", len(norms), sweeps)
	}
	// The update of sweep 0 is (1 - eigenvalue) times the mode, whose norm is sqrt((nx-1)(ny-1))/2.
	want := (1 - eigenvalue) * math.Sqrt((nx-1)*(ny-1)) / 2
	for k, norm := range norms {
		// In new-old, the rounding errors of values of order 1 remain in a difference of order 1-eigenvalue.
		if math.Abs(norm/want-1) > 1e-12 {
			t.Fatalf("sweep %d: norm %.17g, want %.17g", k, norm, want)
		}
		want *= eigenvalue
	}
	field := readField(t, filepath.Join(dir, "out", "field.npy"), nx, ny)
	for iy := range ny {
		for ix := range nx {
			want := math.Pow(eigenvalue, sweeps) * math.Sin(math.Pi*float64(ix)/(nx-1)) * math.Sin(
				math.Pi*float64(iy)/(ny-1))
			if iy == 0 || iy == ny-1 || ix == 0 || ix == nx-1 {
				want = 0
			}
			if got := field[iy*nx+ix]; math.Abs(got-want) > 1e-14 {
				t.Fatalf("row %d, column %d: %.17g, want %.17g", iy, ix, got, want)
			}
		}
	}
}

// The SHA-256 in the report is the hash of the interior rows of field.npy. Periodic rows are copies. The picture
// exists.
func TestOutputsAgreeWithEachOther(t *testing.T) {
	t.Parallel()
	const nx, ny = 90, 71
	dir := t.TempDir()
	out := run(t, dir, "launcher", append(set(fmt.Sprintf("grid.nx=%d", nx), fmt.Sprintf("grid.ny=%d", ny),
		"grid.dtype=float64", "solver.max_iterations=50"), "-np", "3")...)
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "out", "field.npy"))
	if err != nil {
		t.Fatal(err)
	}
	rows := raw[len(raw)-nx*ny*8:]
	sum := sha256.Sum256(rows[nx*8 : (ny-1)*nx*8])
	if r := readReport(t, filepath.Join(dir, "out")); r.FieldSHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("report has SHA-256 %s, the file's interior rows %x", r.FieldSHA256, sum)
	}
	field := readField(t, filepath.Join(dir, "out", "field.npy"), nx, ny)
	for ix := 1; ix < nx-1; ix++ {
		if field[ix] != field[(ny-2)*nx+ix] || field[(ny-1)*nx+ix] != field[nx+ix] {
			t.Fatalf("column %d: rows 0 and %d are not the copies of rows %d and 1", ix, ny-1, ny-2)
		}
	}
	for iy := range ny {
		want := elementary.Sin(2 * math.Pi * float64(iy) / (ny - 1))
		if field[iy*nx] != want || field[iy*nx+nx-1] != want {
			t.Fatalf("row %d: sides %v and %v, want %v", iy, field[iy*nx], field[iy*nx+nx-1], want)
		}
	}
	f, err := os.Open(filepath.Join(dir, "out", "field.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if img, err := png.Decode(f); err != nil || img.Bounds().Dx() < 400 || img.Bounds().Dx() > 1900 {
		t.Errorf("field.png: %v, %v", img.Bounds(), err)
	}
}

// A rank needs memory for two stripes and halos and for little else. The report agrees with the operating system, which
// also counts the pages of the program's file that are in memory, and the garbage that the ballast allows.
func TestMemoryOfARank(t *testing.T) {
	const n = 16384
	_, r := solve(t, append(set(fmt.Sprintf("grid.nx=%d", n), fmt.Sprintf("grid.ny=%d", n), "solver.max_iterations=8",
		"output.field=", "output.picture="), "-np", "2")...)
	stripes, err := solver.Partition(solver.Stripe{Lo: 1, Hi: n - 1}, 2, r.Depth)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Stat(filepath.Join(bin, "jacobi-rank"))
	if err != nil {
		t.Fatal(err)
	}
	for i, rank := range r.Ranks {
		need := int64(2*(stripes[i].Rows()+2*r.Depth)) * n * 4
		most := need + need/25
		if rank.MemoryBytes < need || rank.MemoryBytes > most {
			t.Errorf("rank %d: the run counts %d bytes, want %d to %d", i, rank.MemoryBytes, need, most)
		}
		most += program.Size() + ballast.Size
		if rank.RSSBytes < need || rank.RSSBytes > most {
			t.Errorf("rank %d: the operating system counts %d bytes, want %d to %d", i, rank.RSSBytes, need, most)
		}
	}
}

// A rank that is started alone is a run of one rank, with the same answer.
func TestRankAlone(t *testing.T) {
	t.Parallel()
	args := set("grid.nx=64", "grid.ny=80", "solver.max_iterations=30")
	want, _ := solve(t, append(args, "-np", "3")...)
	dir := t.TempDir()
	out := run(t, dir, "jacobi-rank", args...)
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	if r := readReport(t, filepath.Join(dir, "out")); r.FieldSHA256 != want.sha || len(r.Ranks) != 1 {
		t.Errorf("field %s, %d ranks; want %s, 1", r.FieldSHA256, len(r.Ranks), want.sha)
	}
}
