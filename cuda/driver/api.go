package driver

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// function is one function of the driver API.
type function struct {
	name string // with the suffix of its version
	addr uintptr
}

// call calls the function. An argument uintptr(unsafe.Pointer(&x)) keeps x alive, and on the heap, during the call. For
// that, the arguments are allocated on the heap.
//
//go:uintptrescapes
func (f *function) call(args ...uintptr) Code {
	r, _, _ := purego.SyscallN(f.addr, args...)
	return Code(uint32(r))
}

// call calls f and turns a failure into an error.
//
//go:uintptrescapes
func (d *Driver) call(f *function, args ...uintptr) error {
	r, _, _ := purego.SyscallN(f.addr, args...)
	if r := Code(uint32(r)); r != 0 {
		return d.fail(f, r)
	}
	return nil
}

// arguments is scratch for the arguments of one call, with room for the longest list.
type arguments [11]uintptr

// query calls f as function.call does, but allocates nothing and keeps nothing alive: Go memory whose address is
// among the arguments must be on the heap, and the caller must keep it alive.
func (d *Driver) query(f *function, args ...uintptr) Code {
	a := d.arguments.Get().(*arguments)
	r, _, _ := purego.SyscallN(f.addr, a[:copy(a[:], args)]...)
	d.arguments.Put(a)
	return Code(uint32(r))
}

// do calls f as query does and turns a failure into an error.
func (d *Driver) do(f *function, args ...uintptr) error {
	if r := d.query(f, args...); r != 0 {
		return d.fail(f, r)
	}
	return nil
}

// api holds the functions that this package calls.
type api struct {
	init, driverGetVersion, getErrorName, getErrorString function

	deviceGetCount, deviceGet, deviceGetName, deviceGetUUID, deviceGetPCIBusID, deviceGetAttribute, deviceTotalMem,
	deviceCanAccessPeer function

	primaryCtxRetain, primaryCtxRelease, primaryCtxSetFlags, ctxSetCurrent, ctxGetCurrent, ctxSynchronize,
	ctxEnablePeerAccess,
	ctxGetStreamPriorityRange function

	memGetInfo, memAlloc, memFree, memHostAlloc, memFreeHost, memHostRegister, memHostUnregister,
	memHostGetDevicePointer, memcpyHtoD, memcpyDtoH, memcpyHtoDAsync, memcpyDtoHAsync, memcpyDtoDAsync, memcpy2DAsync,
	memcpyPeerAsync, memsetD8Async, memsetD32Async function

	ipcGetMemHandle, ipcOpenMemHandle, ipcCloseMemHandle function

	streamCreate, streamDestroy, streamSynchronize, streamQuery, streamWaitEvent, streamWaitValue32,
	streamWriteValue32 function

	eventCreate, eventDestroy, eventRecord, eventSynchronize, eventQuery, eventElapsedTime function

	moduleLoadDataEx, moduleGetFunction, funcSetAttribute, funcGetParamInfo, occupancyMaxBlocks,
	launchKernel function
}

// names pairs the functions with their symbols. The suffix is that of CUDA 12.0, MinVersion.
func (a *api) names() map[string]*function {
	return map[string]*function{
		"cuInit":             &a.init,
		"cuDriverGetVersion": &a.driverGetVersion,
		"cuGetErrorName":     &a.getErrorName,
		"cuGetErrorString":   &a.getErrorString,

		"cuDeviceGetCount":      &a.deviceGetCount,
		"cuDeviceGet":           &a.deviceGet,
		"cuDeviceGetName":       &a.deviceGetName,
		"cuDeviceGetUuid_v2":    &a.deviceGetUUID,
		"cuDeviceGetPCIBusId":   &a.deviceGetPCIBusID,
		"cuDeviceGetAttribute":  &a.deviceGetAttribute,
		"cuDeviceTotalMem_v2":   &a.deviceTotalMem,
		"cuDeviceCanAccessPeer": &a.deviceCanAccessPeer,

		"cuDevicePrimaryCtxRetain":      &a.primaryCtxRetain,
		"cuDevicePrimaryCtxRelease_v2":  &a.primaryCtxRelease,
		"cuDevicePrimaryCtxSetFlags_v2": &a.primaryCtxSetFlags,
		"cuCtxGetCurrent":               &a.ctxGetCurrent,
		"cuCtxSetCurrent":               &a.ctxSetCurrent,
		"cuCtxSynchronize":              &a.ctxSynchronize,
		"cuCtxEnablePeerAccess":         &a.ctxEnablePeerAccess,
		"cuCtxGetStreamPriorityRange":   &a.ctxGetStreamPriorityRange,

		"cuMemGetInfo_v2":              &a.memGetInfo,
		"cuMemAlloc_v2":                &a.memAlloc,
		"cuMemFree_v2":                 &a.memFree,
		"cuMemHostAlloc":               &a.memHostAlloc,
		"cuMemFreeHost":                &a.memFreeHost,
		"cuMemHostRegister_v2":         &a.memHostRegister,
		"cuMemHostUnregister":          &a.memHostUnregister,
		"cuMemHostGetDevicePointer_v2": &a.memHostGetDevicePointer,
		"cuMemcpyHtoD_v2":              &a.memcpyHtoD,
		"cuMemcpyDtoH_v2":              &a.memcpyDtoH,
		"cuMemcpyHtoDAsync_v2":         &a.memcpyHtoDAsync,
		"cuMemcpyDtoHAsync_v2":         &a.memcpyDtoHAsync,
		"cuMemcpyDtoDAsync_v2":         &a.memcpyDtoDAsync,
		"cuMemcpy2DAsync_v2":           &a.memcpy2DAsync,
		"cuMemcpyPeerAsync":            &a.memcpyPeerAsync,
		"cuMemsetD8Async":              &a.memsetD8Async,
		"cuMemsetD32Async":             &a.memsetD32Async,

		"cuIpcGetMemHandle":     &a.ipcGetMemHandle,
		"cuIpcOpenMemHandle_v2": &a.ipcOpenMemHandle,
		"cuIpcCloseMemHandle":   &a.ipcCloseMemHandle,

		"cuStreamCreateWithPriority": &a.streamCreate,
		"cuStreamDestroy_v2":         &a.streamDestroy,
		"cuStreamSynchronize":        &a.streamSynchronize,
		"cuStreamQuery":              &a.streamQuery,
		"cuStreamWaitEvent":          &a.streamWaitEvent,
		"cuStreamWaitValue32_v2":     &a.streamWaitValue32,
		"cuStreamWriteValue32_v2":    &a.streamWriteValue32,

		"cuEventCreate":      &a.eventCreate,
		"cuEventDestroy_v2":  &a.eventDestroy,
		"cuEventRecord":      &a.eventRecord,
		"cuEventSynchronize": &a.eventSynchronize,
		"cuEventQuery":       &a.eventQuery,
		"cuEventElapsedTime": &a.eventElapsedTime,

		"cuModuleLoadDataEx":                          &a.moduleLoadDataEx,
		"cuModuleGetFunction":                         &a.moduleGetFunction,
		"cuFuncSetAttribute":                          &a.funcSetAttribute,
		"cuLaunchKernel":                              &a.launchKernel,
		"cuOccupancyMaxActiveBlocksPerMultiprocessor": &a.occupancyMaxBlocks,
	}
}

// optional pairs the functions that came after MinVersion with their symbols. The address of a missing one is 0.
func (a *api) optional() map[string]*function {
	return map[string]*function{"cuFuncGetParamInfo": &a.funcGetParamInfo} // 12.4
}

// lookUp looks name up in a library.
func (f *function) lookUp(lib uintptr, name string) error {
	addr, err := purego.Dlsym(lib, name)
	if err != nil {
		return fmt.Errorf("no function %s: %w", name, err)
	}
	*f = function{name, addr}
	return nil
}

// ErrNoDriver reports that there is no CUDA driver on this machine.
var ErrNoDriver = errors.New("no CUDA driver")

// ErrDriverTooOld reports that the driver is older than MinVersion or lacks a function of it.
var ErrDriverTooOld = errors.New("CUDA driver too old")

// ErrContextLost matches every error after which a context is dead: all later calls on it fail, its memory is lost, and
// only a new process can get a new one. Examples are an illegal access of a kernel and a GPU that has fallen off the
// bus.
var ErrContextLost = errors.New("CUDA context lost")

// Code is a CUresult other than success. It is an error so that errors.Is can compare with it.
type Code int32

// The codes that callers distinguish.
const (
	ErrInvalidValue          Code = 1
	ErrOutOfMemory           Code = 2
	ErrNoDevice              Code = 100 // no GPU, or CUDA_VISIBLE_DEVICES hides them all
	ErrInvalidContext        Code = 201 // the goroutine is not bound, or an IPC handle was opened by its own process
	ErrPeerAccessUnsupported Code = 217 // the two GPUs cannot map each other's memory
	ErrInvalidPTX            Code = 218 // Error.Detail holds the compiler's log
	ErrUnsupportedPTX        Code = 222 // the PTX is newer than the driver
	ErrNotFound              Code = 500 // a module has no function of that name
	ErrPeerAccessEnabled     Code = 704 // EnablePeer was called before for the same contexts
	ErrNotSupported          Code = 801 // for example IPC, where the system does not offer it
)

const notReady Code = 600

// Error returns the code alone. Its text comes from the driver, see Error.
func (c Code) Error() string { return fmt.Sprintf("CUDA error %d", int32(c)) }

// lost reports whether a context is dead after c.
func (c Code) lost() bool {
	switch c {
	case 214, // uncorrectable ECC error
		220,                     // uncorrectable NVLink error
		700,                     // illegal address
		702,                     // launch timeout
		709,                     // context is destroyed
		710,                     // device-side assert
		714, 715, 716, 717, 718, // illegal stack, instruction, alignment, address space, program counter
		719: // launch failed
		return true
	}
	return false
}

// Error is a driver call that failed.
type Error struct {
	Op     string // the function of the driver API, such as "cuMemAlloc"
	Code   Code
	Name   string // such as "CUDA_ERROR_OUT_OF_MEMORY"
	Text   string // the driver's text for it, such as "out of memory"
	Detail string // the caller's request, or the log of the PTX compiler; often empty
}

// Error returns the complete message, on one line unless the detail has several.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%s)", e.Op, e.Text, e.Name)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Is reports whether target is the code, or ErrContextLost if the code means that.
func (e *Error) Is(target error) bool {
	if target == ErrContextLost {
		return e.Code.lost()
	}
	return target == error(e.Code)
}

// fail returns the error for a code that a function returned.
func (d *Driver) fail(f *function, code Code) *Error {
	op, _, _ := strings.Cut(f.name, "_v")
	e := &Error{Op: op, Code: code, Name: d.text(&d.api.getErrorName, code), Text: d.text(&d.api.getErrorString, code)}
	if e.Name == "" {
		e.Name = code.Error()
	}
	if e.Text == "" {
		e.Text = "no text from the driver"
	}
	return e
}

// text returns the driver's name or text for a code, or "" if the driver does not know the code.
func (d *Driver) text(f *function, code Code) string {
	var s *byte
	if f.call(uintptr(uint32(code)), uintptr(unsafe.Pointer(&s))) != 0 || s == nil {
		return ""
	}
	return goString(s)
}

// goString copies a C string.
func goString(s *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(s), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(s, n))
}
