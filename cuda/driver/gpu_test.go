package driver

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed testdata/test.ptx
var testPTX []byte

// gpu opens the driver. It skips the test, with one line, if there is no GPU.
func gpu(t testing.TB) *Driver {
	t.Helper()
	d, err := Open()
	if errors.Is(err, ErrNoDriver) || errors.Is(err, ErrNoDevice) {
		t.Skipf("NOT RUN: %s needs a GPU: %v", t.Name(), err)
	}
	check(t, err)
	return d
}

// TestGPU holds the tests that need a GPU.
func TestGPU(t *testing.T) {
	d := gpu(t)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, d *Driver)
	}{
		{"Devices", testDevices}, {"Memory", testMemory}, {"Copies", testCopies}, {"Kernel", testKernel},
		{"PTXErrors", testPTXErrors}, {"Streams", testStreams}, {"IPC", testIPC}, {"ContextLost", testContextLost},
		{"NoVisibleDevice", testNoVisibleDevice}, {"Peers", testPeers},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, d) })
	}
}

func testDevices(t *testing.T, d *Driver) {
	t.Logf("driver for CUDA %v", d.Version())
	smi := ""
	if out, err := exec.Command("nvidia-smi", "--query-gpu=uuid,pci.bus_id,name",
		"--format=csv,noheader").Output(); err == nil {
		smi = string(out)
	} else {
		t.Logf("NOT RUN: a comparison with nvidia-smi: %v", err)
	}
	for _, v := range must(d.Devices())(t) {
		t.Logf("%v: %+v", &v, v)
		if v.SMs < 1 || v.Major < 7 || v.L2Bytes < 1<<20 || v.TotalBytes < 1<<30 || v.SharedBytes < 48<<10 {
			t.Errorf("implausible: %+v", v)
		}
		if line := fmt.Sprintf("%s, 0000%s, %s\n", v.UUID, v.PCIBusID, v.Name); smi != "" &&
			!strings.Contains(smi, line) {
			t.Errorf("nvidia-smi has no line %q:\n%s", line, smi)
		}
		if rate := v.MemoryRate(); rate < 50e9 || rate > 50e12 {
			t.Errorf("%g bytes a second from memory", rate)
		}
	}
}

func testMemory(t *testing.T, d *Driver) {
	c := bound(t, d)
	free, total, err := c.Memory()
	if err != nil || free <= 0 || free > total || total > c.Device.TotalBytes {
		t.Errorf("%d free of %d, %v; the device has %d", free, total, err, c.Device.TotalBytes)
	}
	_, err = c.Alloc(1 << 50)
	t.Log(err)
	if !isError(err, ErrOutOfMemory) || !strings.HasPrefix(err.Error(),
		"cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY): 1.0 PiB wanted, ") {
		t.Error("the error does not tell the size")
	}
}

// pattern returns n bytes whose values depend on their place.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func testCopies(t *testing.T, d *Driver) {
	c := bound(t, d)
	const width, height, pitch = 1000, 37, 1024
	s, p := must(c.NewStream(0))(t), must(c.Alloc(pitch*height))(t)
	h := must(c.AllocHost(2 * width * height))(t)
	want := pattern(width * height)
	copy(h.Bytes(), want)
	check(t, s.Fill(p, 0xee, pitch*height))
	check(t, s.Copy2D(p.Rows(pitch), h.Rows(0, width), width, height))
	check(t, s.Copy2D(h.Rows(width*height, width), p.Rows(pitch), width, height))
	check(t, s.Synchronize())
	if !bytes.Equal(h.Bytes()[width*height:], want) {
		t.Error("rows changed in the copy")
	}
	rows := make([]byte, pitch*height)
	check(t, c.CopyFromDevice(rows, p))
	for y := range height {
		if row := rows[y*pitch : (y+1)*pitch]; !bytes.Equal(row[:width], want[y*width:(y+1)*width]) ||
			row[width] != 0xee || row[pitch-1] != 0xee {
			t.Fatalf("row %d is wrong", y)
		}
	}
	b := must(unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS))(t)
	m := must(c.RegisterHost(b))(t)
	check(t, c.CopyToDevice(p, want))
	check(t, s.CopyFromDevice(m, 100, p, 5000))
	check(t, s.CopyOnDevice(p+20000, p, 1000))
	check(t, s.CopyToDevice(p+21000, m, 100, 1000))
	check(t, s.Synchronize())
	check(t, c.CopyFromDevice(rows[:2000], p+20000))
	if !bytes.Equal(b[100:5100], want[:5000]) || !bytes.Equal(rows[:1000], want[:1000]) ||
		!bytes.Equal(rows[1000:2000], want[:1000]) {
		t.Error("registered memory: bytes changed in the copy")
	}
	check(t, errors.Join(m.Free(), unix.Munmap(b), h.Free(), c.Free(p), s.Close()))
}

func testKernel(t *testing.T, d *Driver) {
	c := bound(t, d)
	start := time.Now()
	m := must(c.Load(testPTX))(t)
	t.Logf("PTX loaded in %v", time.Since(start))
	f, s, h := must(m.Function("count"))(t), must(c.NewStream(0))(t), must(c.AllocHost(1<<13))(t)
	if blocks := must(f.BlocksPerSM(256, 0))(t); blocks < 4 {
		t.Errorf("%d blocks of 256 a multiprocessor", blocks)
	}
	check(t, f.SetDynamicShared(c.Device.SharedBytes))
	out, first, scale := h.Device(), uint32(5), 0.5
	args := must(f.Args(&out, &first, &scale))(t)
	check(t, f.Launch(s, Dim{X: 1}, Dim{X: 512}, c.Device.SharedBytes, args))
	out, first = h.Device()+4096, 6
	check(t, f.Launch(s, Dim{X: 1}, Dim{X: 512}, 0, args))
	out, first = 0, 0
	check(t, s.Synchronize())
	var got [1024]float64
	must(binary.Decode(h.Bytes(), binary.NativeEndian, &got))(t)
	for i, v := range got {
		if want := float64(5+i/512) + 0.5*float64(i%512); v != want {
			t.Fatalf("out[%d] = %v, want %v", i, v, want)
		}
	}
	_, err := f.Args(&out, &scale, &scale)
	if d.Version() >= 12040 {
		checkError(t, err, nil, "kernel count: argument 1 has 8 bytes, the kernel declares 4")
	}
	_, err = m.Function("account")
	checkError(t, err, ErrNotFound,
		"kernel account: cuModuleGetFunction: named symbol not found (CUDA_ERROR_NOT_FOUND)")
	err = f.Launch(s, Dim{X: 1}, Dim{X: 1025}, 0, args)
	checkError(t, err, ErrInvalidValue, "kernel count, grid {1 0 0}, block {1025 0 0}, 0 bytes shared: "+
		"cuLaunchKernel: invalid argument (CUDA_ERROR_INVALID_VALUE)")
	check(t, errors.Join(h.Free(), s.Close()))
}

func testPTXErrors(t *testing.T, d *Driver) {
	c := bound(t, d)
	_, err := c.Load(bytes.Replace(testPTX, []byte("ret;"), []byte("retreat;"), 1))
	t.Log(err)
	if e := (*Error)(nil); !isError(err, ErrInvalidPTX) || !errors.As(err, &e) ||
		!strings.Contains(e.Detail, "retreat") {
		t.Error("the log does not name what is wrong")
	}
	_, err = c.Load(bytes.Replace(testPTX, []byte(".version 6.4"), []byte(".version 9.9"), 1))
	t.Log(err)
	if !isError(err, ErrUnsupportedPTX) {
		t.Error("the error is not ErrUnsupportedPTX")
	}
}

func testStreams(t *testing.T, d *Driver) {
	c := bound(t, d)
	low, high, err := c.Priorities()
	if err != nil || low <= high {
		t.Errorf("priorities %d to %d, %v", low, high, err)
	}
	a, b := must(c.NewStream(low))(t), must(c.NewStream(high))(t)
	h, p := must(c.AllocHost(8))(t), must(c.Alloc(1<<20))(t)
	from, to, plain := must(c.NewEvent(true))(t), must(c.NewEvent(true))(t), must(c.NewEvent(false))(t)
	check(t, errors.Join(a.Fill32(p, 0, 2), a.Synchronize()))
	// Stream a waits for the value that b writes, and the last work of b for the event of a.
	check(t, errors.Join(from.Record(a), a.WaitValue(p, 41), a.WriteValue(p+4, 43), to.Record(a), plain.Record(a)))
	if must(a.Done())(t) || must(plain.Done())(t) {
		t.Error("a stream passed a value that was not written")
	}
	check(t, errors.Join(b.WriteValue(p, 42), b.Wait(plain), b.CopyFromDevice(h, 0, p, 8), b.Synchronize()))
	if got := [2]uint32{binary.NativeEndian.Uint32(h.Bytes()),
		binary.NativeEndian.Uint32(h.Bytes()[4:])}; got != [2]uint32{42, 43} {
		t.Errorf("got %v", got)
	}
	check(t, plain.Synchronize())
	if !must(a.Done())(t) || !must(plain.Done())(t) {
		t.Error("the streams are not done")
	}
	if e := must(Elapsed(from, to))(t); e <= 0 || e > 10*time.Second {
		t.Errorf("elapsed %v", e)
	}
	check(t, c.Synchronize())
	check(t, errors.Join(from.Close(), to.Close(), plain.Close(), a.Close(), b.Close(), h.Free(), c.Free(p)))
}

func testPeers(t *testing.T, d *Driver) {
	devices := must(d.Devices())(t)
	if len(devices) < 2 {
		t.Skip("NOT RUN: TestGPU/Peers needs two GPUs")
	}
	if !must(devices[0].CanAccessPeer(&devices[1]))(t) {
		t.Skip("NOT RUN: TestGPU/Peers needs two GPUs that are peers")
	}
	c, peer := bound(t, d), must(devices[1].Retain(ScheduleAuto))(t)
	check(t, c.EnablePeer(peer))
	check(t, peer.Bind())
	q := must(peer.Alloc(1 << 20))(t)
	check(t, peer.Unbind())
	check(t, c.Bind())
	p, s, got, want := must(c.Alloc(1<<20))(t), must(c.NewStream(0))(t), make([]byte, 1<<20), pattern(1<<20)
	check(t, c.CopyToDevice(p, want))
	check(t, errors.Join(s.CopyOnDevice(q, p, 1<<20), s.Fill(p, 0, 1<<20), s.CopyOnDevice(p, q, 1<<20),
		s.Synchronize()))
	check(t, c.CopyFromDevice(got, p))
	if !bytes.Equal(got, want) {
		t.Error("bytes changed in the copies to the peer and back")
	}
	check(t, errors.Join(c.Free(p), s.Close(), c.Unbind(), peer.Close()))
}
