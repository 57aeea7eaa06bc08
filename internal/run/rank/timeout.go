package rank

import (
	"context"
	"time"

	"jacobi/internal/base/awake"
)

// slowDisk is the speed, in bytes a second, of the slowest file system that a run supports.
const slowDisk = 10 << 20

// withFileTimeout bounds a step in which ranks wait for each other's files.
func (r *run) withFileTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return awake.WithTimeout(ctx, r.fileTimeout())
}

// fileTimeout is halo.timeout plus the time for writing the whole field to a slow disk.
func (r *run) fileTimeout() time.Duration {
	mesh := r.problem.Mesh()
	bytes := time.Duration(mesh.NY) * time.Duration(mesh.RowBytes())
	return r.Config.Halo.Timeout + bytes/slowDisk*time.Second
}
