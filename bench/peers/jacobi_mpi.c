// The MPI peer: the sweep of jacobi_omp.c in float32 with one thread per rank. Every sweep exchanges halo rows by
// MPI_Sendrecv and computes the norm by MPI_Allreduce. The field is plain, as in jacobi_omp.c.
//
//	mpirun -n RANKS jacobi_mpi NX NY SWEEPS
//
// prints the time of the sweeps in seconds and the last norm.
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double sweep(float* restrict next, const float* restrict now, long nx, long rows) {
  double total = 0;
  for (long y = 1; y <= rows; y++) {
    const float* restrict c = now + y * nx, * restrict n = c - nx, * restrict s = c + nx;
    float* restrict d = next + y * nx;
    float row = 0;
#pragma omp simd reduction(+ : row)
    for (long x = 1; x < nx - 1; x++) {
      float v = 0.25f * ((c[x - 1] + c[x + 1]) + (n[x] + s[x]));
      float r = v - c[x];
      d[x] = v;
      row += r * r;
    }
    total += row;
  }
  return total;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 4 || atol(argv[1]) < 3 || atol(argv[2]) < size + 2) {
    fprintf(stderr, "usage: %s NX NY SWEEPS\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  long nx = atol(argv[1]), ny = atol(argv[2]), sweeps = atol(argv[3]);
  long lo = 1 + (ny - 2) * rank / size, rows = 1 + (ny - 2) * (rank + 1) / size - lo;
  float* field[2];
  for (int i = 0; i < 2; i++) {
    field[i] = aligned_alloc(4096, ((rows + 2) * nx * sizeof(float) + 4095) / 4096 * 4096);
    if (!field[i]) MPI_Abort(MPI_COMM_WORLD, 1);
    for (long y = 0; y < rows + 2; y++)
      for (long x = 0; x < nx; x++)
        field[i][y * nx + x] = x == 0 || x == nx - 1 ? sin(2 * M_PI * (lo - 1 + y) / (ny - 1)) : 0.5;
  }
  int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  double norm = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (long k = 0; k < sweeps; k++) {
    float *now = field[k % 2], *next = field[1 - k % 2];
    double mine = sweep(next, now, nx, rows), all;
    MPI_Sendrecv(next + nx, nx, MPI_FLOAT, up, 0, next + (rows + 1) * nx, nx, MPI_FLOAT, down, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(next + rows * nx, nx, MPI_FLOAT, down, 1, next, nx, MPI_FLOAT, up, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    norm = sqrt(all);
  }
  double seconds = MPI_Wtime() - start;
  if (rank == 0) printf("%.9f %.9g\n", seconds, norm);
  MPI_Finalize();
  return 0;
}
