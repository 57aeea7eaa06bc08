// Package cuda is the backend that sweeps a stripe on an NVIDIA GPU.
//
//	kernels/      CUDA C++, PTX that the driver compiles for the GPU it finds, and machine code for Hopper
//	driver/       the CUDA driver API, opened at run time
//	device.go     a stripe on a GPU: memory, streams; opening and closing
//	rows.go       rows between host and device
//	window.go     memory into which other ranks write, and the words by which ranks wait for each other
//	timeline.go   when the work in streams was done, for traces
//	kernel.go     a pass of a sweep kernel over some rows; deep.go: how the deep kernels divide it among blocks
//	terms.go      the values of its operator
//
// On these stand, beside each other, solver.Backend and solver.Exchange:
//
//	backend.go    edges on a stream of high priority, the interior on another
//	sums.go       from the kernel's counters to solver.Sum
//	exchange.go   rows stored by kernels, copied to a peer, or over links by the host
//
// module.go has the code of all kernels, of launcher probe, too.
//
// On device.go, rows.go, window.go and timeline.go stands multigrid.Device, too, with modules of kernels of its own,
// multigrid, weighted_levels, measure and zone:
//
//	levels.go     the calls of a cycle; level.go: the arrays, walls and transfers of a level
//	levelexchange.go  rows written into the memory of other ranks: levelwindow.go
//	levelkernel.go  the passes of a level; leveltail.go: the coarsest levels in one block
//	measure.go    the sum of squares and the largest value of an array
//	coarsest.go   the coarsest level alone, and what is known of it
//	weightedlevels.go  the levels of a weighted operator; weightedsetup.go, weightedcycles.go: their set-up and cycles
//	cg.go         its conjugate gradients; aggregates.go: its aggregates
package cuda
