package driver

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childVariable names the function in children that the test binary runs instead of the tests.
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

// startChild starts this binary as a child that reads input.
func startChild(t *testing.T, input string, env ...string) (cmd *exec.Cmd, output *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command(must(os.Executable())(t))
	cmd.Env = append(os.Environ(), env...)
	output = new(bytes.Buffer)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), output, output
	check(t, cmd.Start())
	return cmd, output
}

// The layout of the memory that the two processes of testIPC share, in bytes: the parent's flag, the child's flag, and
// the data, which has ipcWords 32-bit words.
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
		check(t, must(c.NewStream(0))(t).WriteValue(p+ipcDone, 1)) // so that s does not wait for a dead child
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

// ipcChild maps the parent's memory, waits for the parent's flag, checks and overwrites the data, and sets its own
// flag.
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

// strayChild runs a kernel that writes to an invalid address, and checks the errors of later calls.
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
