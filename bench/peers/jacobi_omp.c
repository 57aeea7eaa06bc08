// The peer of the CPU backend: the same update and norm as a good C programmer writes them with OpenMP, one sweep per
// pass over two arrays. The norm is a float reduction over each row, which the compiler vectorises, summed in double.
// Unlike the product's norm it is not reproducible, and so cheaper.
//
//	jacobi_omp NX NY SWEEPS float32|float64 plain|gtc2019
//
// prints the time of the sweeps in seconds and the last norm. The field plain is 0.5 in the interior and sin(2 pi y) at
// the sides, with fixed top and bottom rows. The field gtc2019 is 0 in the interior with the same sides and periodic
// top and bottom; its front has denormal values.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <omp.h>

#define JACOBI(T, ZERO, QUARTER)                                                                             \
  static double sweep_##T(T* restrict next, const T* restrict now, long nx, long ny) {                       \
    double total = 0;                                                                                        \
    _Pragma("omp parallel for schedule(static) reduction(+ : total)") for (long y = 1; y < ny - 1; y++) {    \
      const T* restrict c = now + y * nx, * restrict n = c - nx, * restrict s = c + nx;                      \
      T* restrict d = next + y * nx;                                                                         \
      T row = ZERO;                                                                                          \
      _Pragma("omp simd reduction(+ : row)") for (long x = 1; x < nx - 1; x++) {                             \
        T v = QUARTER * ((c[x - 1] + c[x + 1]) + (n[x] + s[x]));                                             \
        T r = v - c[x];                                                                                      \
        d[x] = v;                                                                                            \
        row += r * r;                                                                                        \
      }                                                                                                      \
      total += row;                                                                                          \
    }                                                                                                        \
    return total;                                                                                            \
  }                                                                                                          \
  static T* allocate_##T(long nx, long ny, T inside) {                                                       \
    T* a = aligned_alloc(4096, (nx * ny * sizeof(T) + 4095) / 4096 * 4096);                                  \
    if (!a) {                                                                                                \
      perror("aligned_alloc");                                                                               \
      exit(1);                                                                                               \
    }                                                                                                        \
    _Pragma("omp parallel for schedule(static)") for (long y = 0; y < ny; y++) for (long x = 0; x < nx; x++) \
        a[y * nx + x] = x == 0 || x == nx - 1 ? (T)sin(2 * M_PI * y / (ny - 1)) : inside;                    \
    return a;                                                                                                \
  }                                                                                                          \
  static void run_##T(long nx, long ny, int sweeps, int periodic) {                                          \
    T inside = periodic ? ZERO : (T)0.5;                                                                     \
    T *a = allocate_##T(nx, ny, inside), *b = allocate_##T(nx, ny, inside);                                  \
    double norm = 0, start = omp_get_wtime();                                                                \
    for (int k = 0; k < sweeps; k++) {                                                                       \
      norm = sqrt(sweep_##T(b, a, nx, ny));                                                                  \
      if (periodic) {                                                                                        \
        memcpy(b + 1, b + (ny - 2) * nx + 1, (nx - 2) * sizeof(T));                                          \
        memcpy(b + (ny - 1) * nx + 1, b + nx + 1, (nx - 2) * sizeof(T));                                     \
      }                                                                                                      \
      T* t = a;                                                                                              \
      a = b;                                                                                                 \
      b = t;                                                                                                 \
    }                                                                                                        \
    printf("%.9f %.9g\n", omp_get_wtime() - start, norm);                                                    \
    free(a);                                                                                                 \
    free(b);                                                                                                 \
  }

JACOBI(float, 0.0f, 0.25f)
JACOBI(double, 0.0, 0.25)

int main(int argc, char** argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: %s NX NY SWEEPS float32|float64 plain|gtc2019\n", argv[0]);
    return 2;
  }
  long nx = atol(argv[1]), ny = atol(argv[2]);
  int sweeps = atoi(argv[3]), periodic = strcmp(argv[5], "gtc2019") == 0;
  if (nx < 3 || ny < 3 || sweeps < 1) {
    fprintf(stderr, "%s: a mesh of at least 3 x 3 and one sweep\n", argv[0]);
    return 2;
  }
  if (strcmp(argv[4], "float64") == 0) run_double(nx, ny, sweeps, periodic);
  else run_float(nx, ny, sweeps, periodic);
  return 0;
}
