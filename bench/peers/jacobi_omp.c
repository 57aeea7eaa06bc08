// The peer of the CPU backend: the same update and norm as a good C programmer writes them with OpenMP, one sweep a
// pass over two arrays. The norm is a float reduction over a row, which the compiler vectorises, summed in double; it is
// not reproducible, and so cheaper than the one that it is compared with.
//
//	jacobi_omp NX NY SWEEPS REPEATS float32|float64
//
// prints the least time of a repeat in seconds and the last norm.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <omp.h>

#define JACOBI(T, ZERO, QUARTER)                                                                       \
	static double sweep_##T(T *restrict next, const T *restrict now, long nx, long ny) {               \
		double total = 0;                                                                              \
		_Pragma("omp parallel for schedule(static) reduction(+ : total)")                              \
		for (long y = 1; y < ny - 1; y++) {                                                            \
			const T *restrict c = now + y * nx, *restrict n = c - nx, *restrict s = c + nx;            \
			T *restrict d = next + y * nx;                                                             \
			T row = ZERO;                                                                              \
			_Pragma("omp simd reduction(+ : row)")                                                     \
			for (long x = 1; x < nx - 1; x++) {                                                        \
				T v = QUARTER * ((c[x - 1] + c[x + 1]) + (n[x] + s[x]));                               \
				T r = v - c[x];                                                                        \
				d[x] = v;                                                                              \
				row += r * r;                                                                          \
			}                                                                                          \
			total += row;                                                                              \
		}                                                                                              \
		return total;                                                                                  \
	}                                                                                                  \
	static T *allocate_##T(long nx, long ny) {                                                         \
		T *a = aligned_alloc(4096, (nx * ny * sizeof(T) + 4095) / 4096 * 4096);                        \
		if (!a) {                                                                                      \
			perror("aligned_alloc");                                                                   \
			exit(1);                                                                                   \
		}                                                                                              \
		_Pragma("omp parallel for schedule(static)")                                                   \
		for (long y = 0; y < ny; y++)                                                                  \
			for (long x = 0; x < nx; x++) /* the field that bench/cpu gives the backend */             \
				a[y * nx + x] = x == 0 || x == nx - 1 ? (T)sin(2 * M_PI * y / (ny - 1)) : (T)((x * 7 + y * 13) % 64) / 64; \
		return a;                                                                                      \
	}                                                                                                  \
	static void run_##T(long nx, long ny, int sweeps, int repeats) {                                   \
		T *a = allocate_##T(nx, ny), *b = allocate_##T(nx, ny);                                        \
		double best = INFINITY, norm = 0;                                                              \
		for (int r = 0; r < repeats; r++) {                                                            \
			double start = omp_get_wtime();                                                            \
			for (int k = 0; k < sweeps; k++) {                                                         \
				norm = sqrt(sweep_##T(b, a, nx, ny));                                                  \
				T *t = a;                                                                              \
				a = b;                                                                                 \
				b = t;                                                                                 \
			}                                                                                          \
			best = fmin(best, omp_get_wtime() - start);                                                \
		}                                                                                              \
		printf("%.9f %.9g\n", best, norm);                                                             \
		free(a);                                                                                       \
		free(b);                                                                                       \
	}

JACOBI(float, 0.0f, 0.25f)
JACOBI(double, 0.0, 0.25)

int main(int argc, char **argv) {
	if (argc != 6) {
		fprintf(stderr, "usage: %s NX NY SWEEPS REPEATS float32|float64\n", argv[0]);
		return 2;
	}
	long nx = atol(argv[1]), ny = atol(argv[2]);
	int sweeps = atoi(argv[3]), repeats = atoi(argv[4]);
	if (nx < 3 || ny < 3 || sweeps < 1 || repeats < 1) {
		fprintf(stderr, "%s: a mesh of at least 3 x 3, one sweep and one repeat\n", argv[0]);
		return 2;
	}
	if (strcmp(argv[5], "float64") == 0)
		run_double(nx, ny, sweeps, repeats);
	else
		run_float(nx, ny, sweeps, repeats);
	return 0;
}
