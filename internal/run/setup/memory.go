package setup

import (
	"jacobi/configs"
	"jacobi/cuda"
	cpulevels "jacobi/internal/compute/cpu/levels"
	"jacobi/solver/multigrid"
)

// LevelBytes returns the memory of a rank of multigrid.
func (s *Setup) LevelBytes(cfg configs.Config, rank int, onGPUs bool) (int64, error) {
	levels := s.LevelLayout(rank)
	bytesOf, cgBytes := cpulevels.MemoryBytes, cpulevels.CGBytes
	if onGPUs {
		bytesOf, cgBytes = cuda.LevelsBytes, cuda.CGBytes
	}
	bytes := bytesOf(levels)
	if onGPUs && s.Ranks > 1 && cfg.Halo.Transport != "nats" {
		bytes += cuda.WindowBytes(levels, s.Ranks)
	}
	if cfg.Solver.Accelerated(s.Operator.Fixed != nil || s.Operator.Weighted) {
		bytes += cgBytes(levels)
	}
	if !cfg.Solver.FullStart() || cfg.Checkpoint.Resume != "" {
		return bytes, nil
	}
	stages, err := multigrid.StagesOf(levels, s.Levels.Stripes, rank, nil, s.Levels.Points)
	for _, stage := range stages {
		bytes += bytesOf(stage.Layout)
	}
	return bytes, err
}
