package cuda

import "jacobi/solver"

// ExactBytes is the size of the words of an exact sum on the device.
const ExactBytes = sumBytes

// ExactBiases returns what the limbs of the kernels probe_sum_exact begin with.
func ExactBiases() [3]float64 { return biases(0) }

// ExactSum returns the sum in the words that probe_sum_exact has filled, in units of magnitude 0.
func ExactSum(words []byte) solver.Sum { return decodeSum(words, make([]byte, sumBytes)) }
