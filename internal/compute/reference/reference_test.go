package reference

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"jacobi/solver"
)

// gtc2019 is the well-known sample's problem, float32.
type gtc2019 struct{ nx, ny int }

func (g gtc2019) Row(iy int, dst []byte) error {
	clear(dst)
	v := math.Float32bits(float32(math.Sin(2 * float64(float32(math.Pi)) * float64(iy) / float64(g.ny-1))))
	binary.LittleEndian.PutUint32(dst, v)
	binary.LittleEndian.PutUint32(dst[4*(g.nx-1):], v)
	return nil
}

// The first norm agrees with that published for the multi-GPU sample. The end-to-end tests compare the later ones with
// a backend, which gives the bits of this package.
func TestNormsOfTheMultiGPUSample(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN with -short: TestNormsOfTheMultiGPUSample, which make test runs")
	}
	mesh := solver.Mesh{NX: 1024, NY: 1024, DType: solver.Float32, Walls: solver.WrapRows(true)}
	j, err := New(mesh, solver.Operator{}, gtc2019{1024, 1024}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 99 {
		j.Sweep()
	}
	if norm := j.Sweep().Norm(0); fmt.Sprintf("%.6f", norm) != "0.225864" {
		t.Errorf("sweep 99: norm %.6f, want 0.225864", norm)
	}
}

// fma in float32 equals exact arithmetic rounded once.
func TestFMA32RoundsOnce(t *testing.T) {
	a := arithmetic(solver.Float32)
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() float32 {
		return math.Float32frombits(uint32(rng.IntN(2))<<31 | uint32(100+rng.IntN(40))<<23 | uint32(rng.IntN(1<<23)))
	}
	for range 200_000 {
		x, y, z := random(), random(), random()
		exact := new(big.Float).SetPrec(500).SetFloat64(float64(x) * float64(y))
		exact.Add(exact, big.NewFloat(float64(z)))
		want, _ := exact.Float32()
		if got := float32(a.fma(float64(x), float64(y), float64(z))); got != want {
			t.Fatalf("fma(%v, %v, %v) = %v, want %v", x, y, z, got, want)
		}
	}
}
