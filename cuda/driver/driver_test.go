package driver

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"reflect"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/cuda/driver/drivertest"
)

func TestDevices(t *testing.T) {
	d := must(open(drivertest.Build(t)))(t)
	if v := d.Version(); v != 12040 || v.String() != "12.4" {
		t.Errorf("version %v", v)
	}
	devices := must(d.Devices())(t)
	want := []Device{{
		Index: 0, Name: "Fake 10", UUID: "GPU-0a1a2a3a-4a5a-6a7a-8a9a-aabacadaeafa", PCIBusID: "0000:0A:00.0",
		Major: 10075, Minor: 10076, SMs: 10016, L2Bytes: 10038, TotalBytes: 10 << 30, SharedBytes: 90097, handle: 10,
		driver: d,
	}, {
		Index: 1, Name: "Fake 11", UUID: "GPU-0b1b2b3b-4b5b-6b7b-8b9b-abbbcbdbebfb", PCIBusID: "0000:0B:00.0",
		Major: 11075, Minor: 11076, SMs: 11016, L2Bytes: 11038, TotalBytes: 11 << 30, SharedBytes: 91097, handle: 11,
		driver: d,
	}}
	if !reflect.DeepEqual(devices, want) {
		t.Errorf("got  %+v\nwant %+v", devices, want)
	}
	if s := devices[1].String(); s != "GPU 1 (Fake 11, 0000:0B:00.0)" {
		t.Error(s)
	}
	if rate := devices[0].MemoryRate(); rate != 2*10036e3*10037/8 {
		t.Errorf("%g bytes a second from memory", rate)
	}
	for i, want := range []bool{false, true} {
		if can := must(devices[0].CanAccessPeer(&devices[i]))(t); can != want {
			t.Errorf("0 can access %d: %v", i, can)
		}
	}
}

func TestOutOfMemorySaysHowMuch(t *testing.T) {
	c := fake(t)
	_, err := c.Alloc(8 << 30)
	checkError(t, err, ErrOutOfMemory, "cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY): 8.0 GiB wanted, 1.5 "+
		"GiB of 10 GiB free")
}

func TestUnboundGoroutine(t *testing.T) {
	c := fake(t)
	check(t, c.Unbind())
	_, err := c.Alloc(8)
	checkError(t, err, ErrInvalidContext, "cuMemAlloc: invalid device context (CUDA_ERROR_INVALID_CONTEXT)")
	check(t, c.Bind())
}

// After Unbind, the context that was bound before is current again.
func TestNestedBind(t *testing.T) {
	c := fake(t)
	again := must(c.Device.Retain(ScheduleAuto))(t)
	check(t, again.Bind())
	check(t, again.Unbind())
	p := must(c.Alloc(8))(t)
	check(t, c.Free(p))
	check(t, c.Unbind())
	_, err := c.Alloc(8)
	checkError(t, err, ErrInvalidContext, "cuMemAlloc: invalid device context (CUDA_ERROR_INVALID_CONTEXT)")
	check(t, c.Bind())
	check(t, again.Close())
}

func TestPeerAccess(t *testing.T) {
	c := fake(t)
	devices := must(c.driver.Devices())(t)
	peer := must(devices[1].Retain(ScheduleSpin))(t)
	checkError(t, c.EnablePeer(peer), ErrPeerAccessUnsupported, "cuCtxEnablePeerAccess: "+
		"peer access is not supported between these two devices (CUDA_ERROR_PEER_ACCESS_UNSUPPORTED)")
	check(t, peer.Close())
}

func TestCopiesStayInsideHostMemory(t *testing.T) {
	c := fake(t)
	s, h := must(c.NewStream(0))(t), must(c.AllocHost(64))(t)
	checkError(t, s.CopyToDevice(1, h, 60, 5), nil, "host memory of 64 bytes has no part [60, 65)")
	checkError(t, s.CopyFromDevice(h, -1, 1, 5), nil, "host memory of 64 bytes has no part [-1, 4)")
	checkError(t, s.Copy2D(DevicePtr(1).Rows(8), h.Rows(0, 20), 5, 4), nil,
		"copy from: host memory of 64 bytes has no part [0, 65)")
	checkError(t, s.Copy2D(h.Rows(0, 8), DevicePtr(1).Rows(8), 9, 2), nil,
		"copy to: rows of 9 bytes overlap: their pitch is 8")
	checkError(t, s.Copy2D(h.Rows(0, 8), DevicePtr(1).Rows(8), 8, 0), nil, "copy 0 rows of 8 bytes: nothing to copy")
	check(t, h.Free())
	checkError(t, s.CopyToDevice(1, h, 0, 1), nil, "host memory of 0 bytes has no part [0, 1)")
}

func TestRegisteredMemory(t *testing.T) {
	c := fake(t)
	b := must(unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS))(t)
	h, s := must(c.RegisterHost(b))(t), must(c.NewStream(0))(t)
	check(t, s.WriteValue(h.Device()+8, 77))
	if n := binary.NativeEndian.Uint32(b[8:]); n != 77 {
		t.Errorf("got %d", n)
	}
	check(t, s.WaitValue(h.Device()+8, 77))
	checkError(t, s.WaitValue(h.Device()+8, 78), ErrInvalidValue,
		"cuStreamWaitValue32: invalid argument (CUDA_ERROR_INVALID_VALUE)")
	check(t, h.Free())
	check(t, unix.Munmap(b))
}

func TestStreamsAndEvents(t *testing.T) {
	c := fake(t)
	if low, high, err := c.Priorities(); low != 0 || high != -5 || err != nil {
		t.Error(low, high, err)
	}
	_, err := c.NewStream(1)
	checkError(t, err, ErrInvalidValue, "cuStreamCreateWithPriority: invalid argument (CUDA_ERROR_INVALID_VALUE)")
	s, from, to := must(c.NewStream(0))(t), must(c.NewEvent(true))(t), must(c.NewEvent(true))(t)
	plain := must(c.NewEvent(false))(t)
	check(t, from.Record(s))
	check(t, to.Record(s))
	check(t, s.Wait(plain))
	if must(s.Done())(t) {
		t.Error("the stream is said to be empty")
	}
	if !must(to.Done())(t) {
		t.Error("the event is said not to have passed")
	}
	if d := must(Elapsed(from, to))(t); d != 250*time.Microsecond {
		t.Error(d)
	}
	_, err = Elapsed(plain, to)
	checkError(t, err, ErrInvalidValue, "cuEventElapsedTime: invalid argument (CUDA_ERROR_INVALID_VALUE)")
	for _, e := range []interface{ Close() error }{from, to, plain, s} {
		check(t, e.Close())
	}
}

func TestIPC(t *testing.T) {
	c := fake(t)
	h := must(c.IPCHandle(4096))(t)
	if want := (IPCHandle{[8]uint64{4096, 4097, 4098, 4099, 4100, 4101, 4102, 4103}}); h != want {
		t.Errorf("got %v", h)
	}
	p := must(c.OpenIPC(h))(t)
	if p != 4096 {
		t.Errorf("opened as %d", p)
	}
	check(t, c.CloseIPC(p))
	_, err := c.OpenIPC(must(c.IPCHandle(0))(t))
	checkError(t, err, ErrNotSupported, "cuIpcOpenMemHandle: operation not supported (CUDA_ERROR_NOT_SUPPORTED)")
}

// packed returns code packed by gzip.
func packed(code string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(code)) // a buffer does not fail
	z.Close()
	return b.Bytes()
}

func TestModules(t *testing.T) {
	c := fake(t)
	_, err := c.Load([]byte("bad"))
	checkError(t, err, ErrInvalidPTX, "cuModuleLoadDataEx: a PTX JIT compilation failed (CUDA_ERROR_INVALID_PTX): "+
		"ptxas application ptx input, line 1; fatal: bad")
	_, err = c.Load([]byte("new"))
	checkError(t, err, ErrUnsupportedPTX, "cuModuleLoadDataEx: the provided PTX was compiled with an unsupported "+
		"toolchain. "+
		"(CUDA_ERROR_UNSUPPORTED_PTX_VERSION): the driver is for CUDA 12.4\nptxas application ptx input, line 1; "+
		"fatal: new")
	m := must(c.Load([]byte("good")))(t)
	_, err = m.Function("product")
	checkError(t, err, ErrNotFound,
		"kernel product: cuModuleGetFunction: named symbol not found (CUDA_ERROR_NOT_FOUND)")
	must(c.Load(packed("good")))(t)
	_, err = c.Load(packed("bad"))
	checkError(t, err, ErrInvalidPTX, "cuModuleLoadDataEx: a PTX JIT compilation failed (CUDA_ERROR_INVALID_PTX): "+
		"ptxas application ptx input, line 1; fatal: bad")
	if _, err := c.Load(packed("good")[:20]); err == nil || err.Error() != "unpack the kernels: unexpected EOF" {
		t.Errorf("half a packed module: %v", err)
	}
	f := must(m.Function("sum"))(t)
	if n := must(f.BlocksPerSM(256, 512))(t); n != 8 {
		t.Errorf("%d blocks", n)
	}
	check(t, f.SetDynamicShared(100000))
	checkError(t, f.SetDynamicShared(100001), ErrInvalidValue, "kernel sum: 100001 bytes of dynamic shared memory: "+
		"cuFuncSetAttribute: invalid argument (CUDA_ERROR_INVALID_VALUE)")
	good := []byte("good")
	first := must(c.Load(good))(t)
	if again := must(c.Load(good))(t); again != first {
		t.Error("the same code is loaded twice")
	}
	other := must(c.Device.Retain(ScheduleAuto))(t)
	if again := must(other.Load(good))(t); again != first {
		t.Error("contexts of a device load the same code twice")
	}
	check(t, other.Close())
	if again := must(c.Load(good))(t); again != first {
		t.Error("a Close that is not the last one drops modules")
	}
}

// The driver unloads the modules of a context with its last Close, so the next context loads them again.
func TestModulesEndWithTheContext(t *testing.T) {
	d := must(open(drivertest.Build(t)))(t)
	device, good := must(d.Devices())(t)[0], []byte("good")
	var modules []*Module
	for range 2 {
		c := must(device.Retain(ScheduleAuto))(t)
		check(t, c.Bind())
		modules = append(modules, must(c.Load(good))(t))
		check(t, c.Unbind())
		check(t, c.Close())
	}
	if modules[0] == modules[1] {
		t.Error("a module outlives its context")
	}
}

func TestArgs(t *testing.T) {
	c := fake(t)
	f := must(must(c.Load([]byte("good")))(t).Function("sum"))(t)
	p, a, b := DevicePtr(0), int32(0), 0.0
	for _, bad := range []struct {
		args []any
		text string
	}{
		{[]any{&p, &a}, "kernel sum: 2 arguments given, it takes more"},
		{[]any{&p, &a, &b, &b}, "kernel sum: it takes 3 arguments"},
		{[]any{&p, &b, &b}, "kernel sum: argument 1 has 8 bytes, the kernel declares 4"},
		{[]any{&p, a, &b}, "kernel sum: argument 1 is int32, not a pointer to it"},
		{[]any{&p, (*int32)(nil), &b}, "kernel sum: argument 1 is *int32, not a pointer to it"},
	} {
		_, err := f.Args(bad.args...)
		checkError(t, err, nil, bad.text)
	}
	must(f.Args(&p, &a, &b))(t)
	old := must(must(fake(t, "-DVERSION=12030").Load([]byte("good")))(t).Function("sum"))(t)
	must(old.Args(&p))(t) // this driver does not tell the arguments of a kernel
}

func TestAFailedKernelLosesTheContext(t *testing.T) {
	c := fake(t)
	f := must(must(c.Load([]byte("good")))(t).Function("sum"))(t)
	s := must(c.NewStream(0))(t)
	p, a, b := DevicePtr(0), int32(-1), 0.0
	check(t, f.Launch(s, Dim{}, Dim{}, 0, must(f.Args(&p, &a, &b))(t)))
	err := s.Synchronize()
	checkError(t, err, ErrContextLost, "cuStreamSynchronize: an illegal memory access was encountered "+
		"(CUDA_ERROR_ILLEGAL_ADDRESS)")
	if isError(err, ErrOutOfMemory) || isError(&Error{Code: ErrOutOfMemory}, ErrContextLost) {
		t.Error("codes are mixed up")
	}
}
