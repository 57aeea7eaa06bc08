// Package cuda is the backend that sweeps a stripe on an NVIDIA GPU.
//
//	kernels/      CUDA C++, PTX that the driver compiles for the GPU it finds, and machine code for Hopper
//	driver/       the CUDA driver API, opened at run time
//	field.go      where rows lie in device memory
//	kernel.go     a pass of a sweep kernel over some rows; once.go, held.go and shares.go divide it among blocks
//	rows.go       rows between host and device
//	sums.go       from the kernel's counters to solver.Sum
//	open.go       opening and closing the GPU
//	wait.go       waiting for the GPU, with a timeout
//	backend.go    solver.Backend: edges on a stream of high priority, the interior on another
//	exchange.go   solver.Exchange: by kernels (direct.go), through a peer's memory (peer.go), or over links
package cuda
