package driver

import (
	"fmt"

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
