package driver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childVariable is set where the test binary runs strayChild instead of the tests.
const childVariable = "DRIVER_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if err := runChild(); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runChild() error {
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
	return strayChild(c)
}

// child runs this binary as a child.
func child(t *testing.T, env ...string) (output []byte, err error) {
	t.Helper()
	cmd := exec.Command(must(os.Executable())(t))
	cmd.Env = append(os.Environ(), append(env, childVariable+"=1")...)
	return cmd.CombinedOutput()
}

func testContextLost(t *testing.T, _ *Driver) {
	output, err := child(t)
	if err != nil {
		t.Errorf("%v", err)
	}
	t.Logf("%s", output)
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
	output, err := child(t, "CUDA_VISIBLE_DEVICES=")
	if err == nil {
		t.Error("the child found a device")
	}
	if want := "cuInit: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE)\n"; !strings.HasSuffix(
		string(output), want) {
		t.Errorf("got %q", output)
	}
}
