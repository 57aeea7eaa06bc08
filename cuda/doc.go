// Package cuda is the backend that sweeps a stripe on an NVIDIA GPU.
//
//	kernels/      CUDA C++, PTX that the driver compiles for the GPU it finds, and machine code for Hopper
//	driver/       the CUDA driver API, opened at run time
//	device.go     a stripe on a GPU: memory, streams; opening and closing
//	field.go      where rows lie in device memory
//	copies.go     rows between host and device
//	flags.go      the words by which ranks wait for each other
//	window.go     memory into which other ranks write, offered and mapped; peer.go: that of a neighbour
//	wait.go       waiting for the GPU, with a timeout
//	timeline.go   when the work in streams was done, for traces; anchor.go: the clocks of GPU and host
//	kernel.go     a pass of a sweep kernel over some rows; once.go, held.go and shares.go divide it among blocks
//
// On these stand, beside each other, solver.Backend and solver.Exchange:
//
//	backend.go    edges on a stream of high priority, the interior on another; open.go, rows.go
//	sums.go       from the kernel's counters to solver.Sum
//	halos.go      what the kernel of a pass does with halos: the value that Exchange gives to Backend
//	exchange.go   rows stored by kernels (peerstores.go), copied to a peer (peercopy.go), or over links by the host
//
// probemodule.go has the kernels of launcher probe.
//
// Beside all this stands multigrid.Device, with a module of kernels of its own:
//
//	levels.go     the calls of a cycle; level.go: the arrays and walls of a level; leveltables.go: transfers
//	levelexchange.go  rows written into the memory of other ranks: levelwindow.go; rowmovers.go moves them, by
//	                kernels or copies; levelwindows.go is common to the meshes of a run
//	levelkernel.go  the passes of a level; leveltail.go: the coarsest levels in one block
package cuda
