// Measures the speed of memory: all threads copy one field to another, with ordinary stores and, where the processor
// has them, with non-temporal stores, which bypass the caches.
//
//	copy BYTES
//
// prints the shortest time of a copy of either kind in seconds.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

static void through(float* restrict to, const float* restrict from, long n) {
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < n; i++) to[i] = from[i];
}

static void past(float* restrict to, const float* restrict from, long n) {
#ifdef __AVX512F__
#pragma omp parallel for schedule(static)
  for (long i = 0; i < n; i += 16) _mm512_stream_ps(to + i, _mm512_load_ps(from + i));
#elif defined(__SSE2__)
#pragma omp parallel for schedule(static)
  for (long i = 0; i < n; i += 4) _mm_stream_ps(to + i, _mm_load_ps(from + i));
#else
  through(to, from, n);
#endif
}

int main(int argc, char** argv) {
  long bytes = argc == 2 ? atol(argv[1]) / 4096 * 4096 : 0, n = bytes / sizeof(float);
  float *a = bytes > 0 ? aligned_alloc(4096, bytes) : NULL, *b = bytes > 0 ? aligned_alloc(4096, bytes) : NULL;
  if (!a || !b) {
    fprintf(stderr, "usage: %s BYTES, a page at least and two times that in memory\n", argv[0]);
    return 2;
  }
#pragma omp parallel for schedule(static)
  for (long i = 0; i < n; i++) a[i] = 1, b[i] = 0;
  double best = INFINITY;
  int repeats = 4 + (int)(2e9 / bytes);
  for (int r = 0; r < repeats; r++) {
    double start = omp_get_wtime();
    (r % 2 ? past : through)(b, a, n);
    best = fmin(best, omp_get_wtime() - start);
  }
  printf("%.9f %g\n", best, b[n - 1]);
  return 0;
}
