// Package driver binds the part of the CUDA driver API that the CUDA backend needs. It opens libcuda.so.1 at run
// time: a program that imports it builds without a CUDA toolkit and starts without a GPU.
//
// # Threads
//
// CUDA keeps the current context per operating system thread. A goroutine that works with a Context, or with an object
// made from one, calls Context.Bind first and Unbind when it is done, so that it stays on its thread in between.
// Contexts, streams, events, modules and argument lists may be used by only one goroutine at a time.
//
// # Memory
//
// A call without a Stream no longer uses the memory that it was given when it returns, so it may be given Go memory. A
// call on a Stream only queues work. It may be given only device memory and HostMemory, which the driver or mmap
// allocated: the driver never holds Go memory for longer than a call.
//
// # Errors
//
// Every failed call returns an *Error. errors.Is compares it with the codes declared here (ErrOutOfMemory,
// ErrUnsupportedPTX, ...). The failure of a kernel appears in a later call on the same context, as ErrContextLost.
package driver
