// The kernel of launcher probe, as a module of its own: a run does not load it.
//
// probe_pingpong bounces a number between two GPUs: each waits until the number is in its own memory, and writes it
// into the memory of the other. The time of a round is that of two small writes over the link, each one until the other
// side sees it.
//
//   traffic over the link   4 bytes each way a round
//   latency of a write      the time of all rounds / (2 rounds)
//
// Launch it once on each GPU, with one thread; both must run at the same time, so never on one GPU. first starts.
// mine and theirs are words that are 0, in this GPU's memory and in the peer's. A side that waits for patience reads in
// vain gives up. done gets the number of complete rounds.
#include "primitives.cuh"

extern "C" __global__ void probe_pingpong(unsigned* mine, unsigned* theirs, unsigned* done, unsigned rounds,
                                          unsigned first, unsigned patience) {
  unsigned round = 1;
  for (; round <= rounds; round++) {
    if (first) store_after_fence(theirs, round);
    unsigned left = patience;
    while (load_acquire(mine) < round && left) left--;
    if (!left) break;
    if (!first) store_after_fence(theirs, round);
  }
  *done = round - 1;
}
