// Package tune measures the links between ranks and the speed of their CPUs before the mesh is divided, where the run
// file leaves the depth of the halos or the stripes open.
//
//	depth.go    which depth is best, for links that take a time
//	links.go    the time that links take
//	balance.go  stripes by the speed of the ranks
//	gain.go     what links over TCP would have saved, for the report
package tune

import (
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// Ranks are the ranks of a run before the mesh is divided.
type Ranks struct {
	Comm   *roster.Comm
	Config configs.Config
	Log    *zap.Logger
	Mesh   solver.Mesh
	OnGPU  bool        // a GPU sweeps on this rank
	CPU    cpu.Options // of this rank otherwise
	// Divide returns the set-up of the ranks with what o leaves open.
	Divide func(o setup.Options) (*setup.Setup, error)
}
