package driver

import (
	"fmt"
	"reflect"
	"runtime"
	"unsafe"
)

// Function is a kernel.
type Function struct {
	Name   string
	driver *Driver
	handle uintptr
}

// SetDynamicShared allows launches with up to n bytes of dynamic shared memory. The default limit is 48 KiB less the
// static shared memory.
func (f *Function) SetDynamicShared(n int) error {
	const maxDynamicShared = 8
	if err := f.driver.call(&f.driver.api.funcSetAttribute, f.handle, maxDynamicShared, uintptr(n)); err != nil {
		return fmt.Errorf("kernel %s: %d bytes of dynamic shared memory: %w", f.Name, n, err)
	}
	return nil
}

// BlocksPerSM returns how many blocks of the given size fit on a multiprocessor at once.
func (f *Function) BlocksPerSM(threads, dynamicShared int) (int, error) {
	var n int32
	err := f.driver.call(&f.driver.api.occupancyMaxBlocks, uintptr(unsafe.Pointer(&n)), f.handle, uintptr(threads),
		uintptr(dynamicShared))
	if err != nil {
		return 0, fmt.Errorf("kernel %s: %w", f.Name, err)
	}
	return int(n), nil
}

// Args holds pointers to the arguments of a kernel. Each Launch passes the values that the variables have at that
// moment, so one Args serves many launches.
type Args struct{ pointers []unsafe.Pointer }

// Args takes a pointer to each argument of the kernel, in order. An argument has the size that the kernel declares: it
// is a fixed-size number, a DevicePtr, or a struct of them laid out as in C. Drivers for CUDA 12.4 and later tell the
// number and sizes of the arguments, and Args checks them there.
func (f *Function) Args(pointers ...any) (*Args, error) {
	a := &Args{make([]unsafe.Pointer, len(pointers))}
	for i, p := range pointers {
		v := reflect.ValueOf(p)
		if v.Kind() != reflect.Pointer || v.IsNil() {
			return nil, fmt.Errorf("kernel %s: argument %d is %T, not a pointer to it", f.Name, i, p)
		}
		a.pointers[i] = v.UnsafePointer()
		if err := f.checkArg(i, v.Type().Elem().Size()); err != nil {
			return nil, err
		}
	}
	if f.driver.api.funcGetParamInfo.addr != 0 {
		if _, ok := f.paramSize(len(pointers)); ok {
			return nil, fmt.Errorf("kernel %s: %d arguments given, it takes more", f.Name, len(pointers))
		}
	}
	return a, nil
}

// checkArg returns an error if the kernel has no argument i or if that argument has another size.
func (f *Function) checkArg(i int, size uintptr) error {
	if f.driver.api.funcGetParamInfo.addr == 0 {
		return nil
	}
	want, ok := f.paramSize(i)
	if !ok {
		return fmt.Errorf("kernel %s: it takes %d arguments", f.Name, i)
	}
	if want != size {
		return fmt.Errorf("kernel %s: argument %d has %d bytes, the kernel declares %d", f.Name, i, size, want)
	}
	return nil
}

// paramSize returns the size of argument i; ok is false if there is none.
func (f *Function) paramSize(i int) (size uintptr, ok bool) {
	var offset uintptr
	r := f.driver.api.funcGetParamInfo.call(f.handle, uintptr(i), uintptr(unsafe.Pointer(&offset)),
		uintptr(unsafe.Pointer(&size)))
	return size, r == 0
}

// Dim is the extent of a grid in blocks or of a block in threads.
type Dim struct{ X, Y, Z int }

// Launch puts the kernel into the stream: grid blocks of block threads, with shared bytes of dynamic shared memory for
// each block. It allocates nothing. The caller may change the arguments when it returns. Zero extents count as 1.
func (f *Function) Launch(s *Stream, grid, block Dim, shared int, a *Args) error {
	var args uintptr
	if len(a.pointers) > 0 {
		args = uintptr(unsafe.Pointer(&a.pointers[0]))
	}
	err := f.driver.do(&f.driver.api.launchKernel, f.handle,
		extent(grid.X), extent(grid.Y), extent(grid.Z), extent(block.X), extent(block.Y), extent(block.Z),
		uintptr(shared), s.handle, args, 0)
	runtime.KeepAlive(a)
	if err != nil {
		return fmt.Errorf("kernel %s, grid %v, block %v, %d bytes shared: %w", f.Name, grid, block, shared, err)
	}
	return nil
}

func extent(n int) uintptr { return uintptr(max(n, 1)) }
