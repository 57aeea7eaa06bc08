package driver

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed testdata/test.ptx
var testPTX []byte

// childVariable makes the test binary run one of children instead of the tests.
const childVariable = "DRIVER_TEST_CHILD"

var children = map[string]func(c *Context) error{"stray": strayChild, "ipc": ipcChild}

func TestMain(m *testing.M) {
	if child := os.Getenv(childVariable); child != "" {
		if err := runChild(child); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runChild(name string) error {
	d, err := Open()
	if err != nil {
		return err
	}
	devices, err := d.Devices()
	if err != nil {
		return err
	}
	c, err := devices[0].Retain(ScheduleAuto)
	if err != nil {
		return err
	}
	if err := c.Bind(); err != nil {
		return err
	}
	return children[name](c)
}

// startChild starts this binary as a child that gets input.
func startChild(t *testing.T, input string, env ...string) (cmd *exec.Cmd, output *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command(must(os.Executable())(t))
	cmd.Env = append(os.Environ(), env...)
	output = new(bytes.Buffer)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), output, output
	check(t, cmd.Start())
	return cmd, output
}

// gpu opens the driver, or skips the test with one line.
func gpu(t testing.TB) *Driver {
	t.Helper()
	d, err := Open()
	if errors.Is(err, ErrNoDriver) || errors.Is(err, ErrNoDevice) {
		t.Skipf("NOT RUN: %s needs a GPU: %v", t.Name(), err)
	}
	check(t, err)
	return d
}

// TestGPU holds what takes a GPU.
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
		if n := must(v.Attribute(WarpSize))(t); n != 32 {
			t.Errorf("warps of %d", n)
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
		t.Error("not said so")
	}
}

// pattern returns n bytes that tell their place.
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
		t.Error("rows changed on their way")
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
		t.Error("registered memory: bytes changed on their way")
	}
	check(t, errors.Join(m.Free(), unix.Munmap(b), h.Free(), c.Free(p), s.Close()))
}

func testKernel(t *testing.T, d *Driver) {
	c := bound(t, d)
	start := time.Now()
	m := must(c.Load(testPTX))(t)
	t.Logf("PTX loaded in %v", time.Since(start))
	f, s, h := must(m.Function("count"))(t), must(c.NewStream(0))(t), must(c.AllocHost(1<<13))(t)
	r, blocks := must(f.Resources())(t), must(f.BlocksPerSM(256, 0))(t)
	t.Logf("%+v, %d blocks of 256 a multiprocessor", r, blocks)
	if r.MaxThreads != 1024 || r.Registers < 4 || r.LocalBytes != 0 || r.SharedBytes != 0 || blocks < 4 {
		t.Error("implausible")
	}
	check(t, f.SetDynamicShared(c.Device.SharedBytes))
	out, first, scale := h.Device(), uint32(5), 0.5
	args := must(f.Args(&out, &first, &scale))(t)
	check(t, f.Launch(s, Dim{X: 1}, Dim{X: 512}, c.Device.SharedBytes, args))
	out, first = h.Device()+4096, 6
	g := must(s.Capture(func() error { return f.Launch(s, Dim{X: 1}, Dim{X: 512}, 0, args) }))(t)
	out, first = 0, 0
	check(t, g.Launch(s))
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
	check(t, errors.Join(g.Close(), m.Close(), h.Free(), s.Close()))
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
		t.Error("not said to be too new")
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
	// a waits for b's value, b's last work for a's event.
	check(t, errors.Join(from.Record(a), a.WaitValue(p, 41), a.WriteValue(p+4, 43), to.Record(a), plain.Record(a)))
	if must(a.Done())(t) || must(plain.Done())(t) {
		t.Error("a stream passed a value that nobody has written")
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

// The layout of the memory that the two processes of testIPC share, in 32-bit words: the parent's flag, the child's
// flag, and the data.
const ipcGo, ipcDone, ipcData, ipcWords = 0, 4, 8, 1024

func testIPC(t *testing.T, d *Driver) {
	c := bound(t, d)
	p, s, h := must(c.Alloc(2<<20))(t), must(c.NewStream(0))(t), must(c.AllocHost(4*ipcWords))(t)
	check(t, errors.Join(s.Fill32(p, 0, 2), s.Fill32(p+ipcData, 0xabcd, ipcWords), s.Synchronize()))
	handle := must(c.IPCHandle(p))(t)
	_, err := c.OpenIPC(handle)
	t.Log(err)
	if !isError(err, ErrInvalidContext) {
		t.Error("a process opened its own handle")
	}
	raw := must(binary.Append(nil, binary.LittleEndian, handle))(t)
	child, output := startChild(t, hex.EncodeToString(raw), childVariable+"=ipc")
	check(t, errors.Join(s.WriteValue(p+ipcGo, 1), s.WaitValue(p+ipcDone, 1)))
	if err := child.Wait(); err != nil {
		check(t, must(c.NewStream(0))(t).WriteValue(p+ipcDone, 1)) // or else s waits for a dead child
		t.Fatalf("child: %v\n%s", err, output)
	}
	check(t, errors.Join(s.CopyFromDevice(h, 0, p+ipcData, 4*ipcWords), s.Synchronize()))
	for i := range ipcWords {
		if got := binary.NativeEndian.Uint32(h.Bytes()[4*i:]); got != 0xdcba {
			t.Fatalf("word %d: %#x", i, got)
		}
	}
	check(t, errors.Join(c.Free(p), s.Close(), h.Free()))
}

// ipcChild maps the parent's memory, waits for its flag, checks and overwrites the data and sets its own flag.
func ipcChild(c *Context) error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	raw, err := hex.DecodeString(string(text))
	if err != nil {
		return err
	}
	var handle IPCHandle
	if _, err := binary.Decode(raw, binary.LittleEndian, &handle); err != nil {
		return err
	}
	p, err := c.OpenIPC(handle)
	if err != nil {
		return err
	}
	s, err := c.NewStream(0)
	if err != nil {
		return err
	}
	h, err := c.AllocHost(4 * ipcWords)
	if err != nil {
		return err
	}
	err = errors.Join(s.WaitValue(p+ipcGo, 1), s.CopyFromDevice(h, 0, p+ipcData, 4*ipcWords),
		s.Fill32(p+ipcData, 0xdcba, ipcWords), s.WriteValue(p+ipcDone, 1), s.Synchronize())
	for i := range ipcWords {
		if got := binary.NativeEndian.Uint32(h.Bytes()[4*i:]); got != 0xabcd && err == nil {
			err = fmt.Errorf("word %d: %#x", i, got)
		}
	}
	return errors.Join(err, c.CloseIPC(p))
}

func testContextLost(t *testing.T, _ *Driver) {
	child, output := startChild(t, "", childVariable+"=stray")
	if err := child.Wait(); err != nil {
		t.Errorf("%v", err)
	}
	t.Log(output)
}

// strayChild runs a kernel that writes where no memory is, and looks at what follows.
func strayChild(c *Context) error {
	m, err := c.Load(testPTX)
	if err != nil {
		return err
	}
	f, err := m.Function("stray")
	if err != nil {
		return err
	}
	s, err := c.NewStream(0)
	if err != nil {
		return err
	}
	a, err := f.Args()
	if err != nil {
		return err
	}
	if err := f.Launch(s, Dim{}, Dim{}, 0, a); err != nil {
		return err
	}
	sync := s.Synchronize()
	_, alloc := c.Alloc(8)
	fmt.Printf("after the stray write: %v\nafter that: %v", sync, alloc)
	if !errors.Is(sync, ErrContextLost) || !errors.Is(alloc, ErrContextLost) {
		return errors.New(": these are not ErrContextLost")
	}
	return nil
}

func testNoVisibleDevice(t *testing.T, _ *Driver) {
	child, output := startChild(t, "", childVariable+"=stray", "CUDA_VISIBLE_DEVICES=")
	if err := child.Wait(); err == nil {
		t.Error("the child found a device")
	}
	if want := "cuInit: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE)\n"; !strings.HasSuffix(
		output.String(), want) {
		t.Errorf("got %q", output)
	}
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
		t.Error("bytes changed on their way to the peer and back")
	}
	check(t, errors.Join(c.Free(p), s.Close(), c.Unbind(), peer.Close()))
}
