package driver

import (
	"bytes"
	"fmt"
	"unsafe"
)

// Device is a GPU. Index counts the GPUs that CUDA_VISIBLE_DEVICES leaves visible, in its order. The driver itself
// reads the variable when it starts.
type Device struct {
	Index       int
	Name        string
	UUID        string // in the format of NVML and nvidia-smi: "GPU-" and 8-4-4-4-12 hexadecimal digits
	PCIBusID    string // as "0000:0a:00.0"; NVML writes a longer domain
	Major       int    // compute capability
	Minor       int
	SMs         int
	L2Bytes     int
	TotalBytes  int64 // memory
	SharedBytes int   // largest dynamic shared memory of a block, see Function.SetDynamicShared

	handle int32
	driver *Driver
}

// Attribute is a CUdevice_attribute.
type Attribute int32

// The attributes that the fields and methods of Device tell of.
const (
	multiprocessors        Attribute = 16
	memoryClockKHz         Attribute = 36
	memoryBusBits          Attribute = 37
	l2Bytes                Attribute = 38
	capabilityMajor        Attribute = 75
	capabilityMinor        Attribute = 76
	sharedBytesPerBlockMax Attribute = 97
)

// Devices lists the GPUs that this process sees.
func (d *Driver) Devices() ([]Device, error) {
	var n int32
	if err := d.call(&d.api.deviceGetCount, uintptr(unsafe.Pointer(&n))); err != nil {
		return nil, err
	}
	devices := make([]Device, n)
	for i := range devices {
		devices[i] = Device{Index: i, driver: d}
		if err := devices[i].describe(); err != nil {
			return nil, fmt.Errorf("GPU %d: %w", i, err)
		}
	}
	return devices, nil
}

// describe fills in the properties of the GPU with v.Index.
func (v *Device) describe() error {
	api, call := &v.driver.api, v.driver.call
	if err := call(&api.deviceGet, uintptr(unsafe.Pointer(&v.handle)), uintptr(v.Index)); err != nil {
		return err
	}
	device := uintptr(v.handle)
	text := make([]byte, 256)
	if err := call(&api.deviceGetName, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), device); err != nil {
		return err
	}
	v.Name = cString(text)
	if err := call(&api.deviceGetPCIBusID, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), device); err != nil {
		return err
	}
	v.PCIBusID = cString(text)
	var id [16]byte
	if err := call(&api.deviceGetUUID, uintptr(unsafe.Pointer(&id)), device); err != nil {
		return err
	}
	v.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	if err := call(&api.deviceTotalMem, uintptr(unsafe.Pointer(&v.TotalBytes)), device); err != nil {
		return err
	}
	for attribute, at := range map[Attribute]*int{
		capabilityMajor: &v.Major, capabilityMinor: &v.Minor, multiprocessors: &v.SMs, l2Bytes: &v.L2Bytes,
		sharedBytesPerBlockMax: &v.SharedBytes,
	} {
		n, err := v.Attribute(attribute)
		if err != nil {
			return err
		}
		*at = n
	}
	return nil
}

// Attribute returns the value of an attribute.
func (v *Device) Attribute(a Attribute) (int, error) {
	var n int32
	err := v.driver.call(&v.driver.api.deviceGetAttribute, uintptr(unsafe.Pointer(&n)), uintptr(a), uintptr(v.handle))
	return int(n), err
}

// MemoryRate returns how many bytes the memory moves in a second, two transfers a clock; 0 if the driver does not tell.
func (v *Device) MemoryRate() float64 {
	clock, err := v.Attribute(memoryClockKHz)
	if err != nil {
		return 0
	}
	bits, err := v.Attribute(memoryBusBits)
	if err != nil {
		return 0
	}
	return 2 * 1e3 * float64(clock) * float64(bits) / 8
}

// CanAccessPeer reports whether v can map the memory of peer.
func (v *Device) CanAccessPeer(peer *Device) (bool, error) {
	var can int32
	err := v.driver.call(&v.driver.api.deviceCanAccessPeer, uintptr(unsafe.Pointer(&can)), uintptr(v.handle),
		uintptr(peer.handle))
	return can != 0, err
}

// String names the GPU for logs.
func (v *Device) String() string {
	return fmt.Sprintf("GPU %d (%s, %s)", v.Index, v.Name, v.PCIBusID)
}

// cString returns the text in a buffer up to its NUL.
func cString(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}
