package driver

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
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

// TestGPU holds the tests that need a GPU. Those of package cuda have kernels, copies, streams and peers.
func TestGPU(t *testing.T) {
	d := gpu(t)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, d *Driver)
	}{
		{"Devices", testDevices}, {"Memory", testMemory}, {"PTXErrors", testPTXErrors},
		{"ContextLost", testContextLost}, {"NoVisibleDevice", testNoVisibleDevice},
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
