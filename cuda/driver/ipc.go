package driver

import "unsafe"

// IPCHandle lets another process of the same node map device memory of this process. It is plain data.
type IPCHandle struct{ Words [8]uint64 }

// IPCHandle returns the handle of memory that Alloc returned. The memory must live until the last process that opened
// the handle has closed it.
func (c *Context) IPCHandle(p DevicePtr) (IPCHandle, error) {
	var h IPCHandle
	err := c.driver.call(&c.driver.api.ipcGetMemHandle, uintptr(unsafe.Pointer(&h)), uintptr(p))
	return h, err
}

// OpenIPC maps the memory of another process, on this device or on a peer that this process can see too. It fails in
// the process that made the handle (ErrInvalidContext), if the devices are not peers (ErrPeerAccessUnsupported), if the
// two processes do not share a PID and IPC namespace, and if the system has no CUDA IPC.
func (c *Context) OpenIPC(h IPCHandle) (DevicePtr, error) {
	const enablePeerAccess = 1
	var p DevicePtr
	if r := Code(c.driver.ipcOpen(&p, h, enablePeerAccess)); r != 0 {
		return 0, c.driver.fail(&c.driver.api.ipcOpenMemHandle, r)
	}
	return p, nil
}

// CloseIPC unmaps memory that OpenIPC mapped.
func (c *Context) CloseIPC(p DevicePtr) error {
	return c.driver.call(&c.driver.api.ipcCloseMemHandle, uintptr(p))
}
