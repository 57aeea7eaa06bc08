package driver

import (
	"errors"
	"fmt"
	"reflect"
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

// api holds the functions that this package calls, with their symbols. The suffix is that of CUDA 12.0, MinVersion.
type api struct {
	driverGetVersion function `cu:"cuDriverGetVersion"`
	getErrorName     function `cu:"cuGetErrorName"`
	getErrorString   function `cu:"cuGetErrorString"`
	init             function `cu:"cuInit"`

	deviceCanAccessPeer function `cu:"cuDeviceCanAccessPeer"`
	deviceGet           function `cu:"cuDeviceGet"`
	deviceGetAttribute  function `cu:"cuDeviceGetAttribute"`
	deviceGetCount      function `cu:"cuDeviceGetCount"`
	deviceGetName       function `cu:"cuDeviceGetName"`
	deviceGetPCIBusID   function `cu:"cuDeviceGetPCIBusId"`
	deviceGetUUID       function `cu:"cuDeviceGetUuid_v2"`
	deviceTotalMem      function `cu:"cuDeviceTotalMem_v2"`

	ctxEnablePeerAccess       function `cu:"cuCtxEnablePeerAccess"`
	ctxGetCurrent             function `cu:"cuCtxGetCurrent"`
	ctxGetStreamPriorityRange function `cu:"cuCtxGetStreamPriorityRange"`
	ctxSetCurrent             function `cu:"cuCtxSetCurrent"`
	ctxSynchronize            function `cu:"cuCtxSynchronize"`
	primaryCtxRelease         function `cu:"cuDevicePrimaryCtxRelease_v2"`
	primaryCtxRetain          function `cu:"cuDevicePrimaryCtxRetain"`
	primaryCtxSetFlags        function `cu:"cuDevicePrimaryCtxSetFlags_v2"`

	memAlloc                function `cu:"cuMemAlloc_v2"`
	memFreeHost             function `cu:"cuMemFreeHost"`
	memFree                 function `cu:"cuMemFree_v2"`
	memGetInfo              function `cu:"cuMemGetInfo_v2"`
	memHostAlloc            function `cu:"cuMemHostAlloc"`
	memHostGetDevicePointer function `cu:"cuMemHostGetDevicePointer_v2"`
	memHostRegister         function `cu:"cuMemHostRegister_v2"`
	memHostUnregister       function `cu:"cuMemHostUnregister"`
	memcpy2DAsync           function `cu:"cuMemcpy2DAsync_v2"`
	memcpyDtoDAsync         function `cu:"cuMemcpyDtoDAsync_v2"`
	memcpyDtoHAsync         function `cu:"cuMemcpyDtoHAsync_v2"`
	memcpyDtoH              function `cu:"cuMemcpyDtoH_v2"`
	memcpyHtoDAsync         function `cu:"cuMemcpyHtoDAsync_v2"`
	memcpyHtoD              function `cu:"cuMemcpyHtoD_v2"`
	memcpyPeerAsync         function `cu:"cuMemcpyPeerAsync"`
	memsetD8Async           function `cu:"cuMemsetD8Async"`

	ipcCloseMemHandle function `cu:"cuIpcCloseMemHandle"`
	ipcGetMemHandle   function `cu:"cuIpcGetMemHandle"`
	ipcOpenMemHandle  function `cu:"cuIpcOpenMemHandle_v2"`

	streamCreate       function `cu:"cuStreamCreateWithPriority"`
	streamDestroy      function `cu:"cuStreamDestroy_v2"`
	streamQuery        function `cu:"cuStreamQuery"`
	streamSynchronize  function `cu:"cuStreamSynchronize"`
	streamWaitEvent    function `cu:"cuStreamWaitEvent"`
	streamWaitValue32  function `cu:"cuStreamWaitValue32_v2"`
	streamWriteValue32 function `cu:"cuStreamWriteValue32_v2"`

	eventCreate      function `cu:"cuEventCreate"`
	eventDestroy     function `cu:"cuEventDestroy_v2"`
	eventElapsedTime function `cu:"cuEventElapsedTime"`
	eventQuery       function `cu:"cuEventQuery"`
	eventRecord      function `cu:"cuEventRecord"`
	eventSynchronize function `cu:"cuEventSynchronize"`

	funcSetAttribute   function `cu:"cuFuncSetAttribute"`
	launchKernel       function `cu:"cuLaunchKernel"`
	moduleGetFunction  function `cu:"cuModuleGetFunction"`
	moduleLoadDataEx   function `cu:"cuModuleLoadDataEx"`
	occupancyMaxBlocks function `cu:"cuOccupancyMaxActiveBlocksPerMultiprocessor"`

	// The address of a function that came after MinVersion is 0 where it is missing.
	funcGetParamInfo function `cu:"cuFuncGetParamInfo,optional"` // 12.4
}

// lookUp looks all functions up in a library.
func (a *api) lookUp(lib uintptr) error {
	all := reflect.ValueOf(a).Elem()
	for i := range all.NumField() {
		symbol, optional := strings.CutSuffix(all.Type().Field(i).Tag.Get("cu"), ",optional")
		f := (*function)(all.Field(i).Addr().UnsafePointer())
		if err := f.lookUp(lib, symbol); err != nil && !optional {
			return err
		}
	}
	return nil
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
