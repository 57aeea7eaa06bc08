package device

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// fakeInventory is a node whose GPUs are all near the same cores.
type fakeInventory struct {
	gpus  []GPU
	cores unix.CPUSet
	err   error
}

func (f fakeInventory) GPUs() ([]GPU, error)           { return f.gpus, f.err }
func (f fakeInventory) Cores(GPU) (unix.CPUSet, error) { return f.cores, f.err }
func (f fakeInventory) Details(GPU) (Details, error)   { return unknownDetails(), f.err }
func (f fakeInventory) Health(string) (Health, error)  { return Health{}, f.err }
func (f fakeInventory) Close() error                   { return nil }

func coreSet(cores ...int) (s unix.CPUSet) {
	for _, c := range cores {
		s.Set(c)
	}
	return s
}

func allowedCores(t *testing.T) (s unix.CPUSet) {
	t.Helper()
	if err := unix.SchedGetaffinity(0, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFormatCores(t *testing.T) {
	for _, test := range []struct {
		cores []int
		want  string
	}{
		{nil, ""}, {[]int{0}, "0"}, {[]int{0, 1, 2, 3, 8, 10, 11}, "0-3,8,10-11"},
		{[]int{63, 64, 1022, 1023}, "63-64,1022-1023"},
	} {
		if got := FormatCores(coreSet(test.cores...)); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestNear(t *testing.T) {
	allowed := allowedCores(t)
	near := allowed
	near.Set(1000) // a core that this machine does not have
	if got, err := Near(fakeInventory{cores: near}, GPU{}); err != nil || got != allowed {
		t.Errorf("got %s, %v; want %s", FormatCores(got), err, FormatCores(allowed))
	}
	_, err := Near(fakeInventory{cores: coreSet(1000)}, GPU{})
	want := "no core near the GPU is among those allowed: near are 1000, allowed are " + FormatCores(allowed)
	if !errors.Is(err, ErrNoCores) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	broken := errors.New("broken")
	if _, err := Near(fakeInventory{err: broken}, GPU{}); err != broken {
		t.Errorf("got %v", err)
	}
}

func TestPinPinsAllThreads(t *testing.T) {
	allowed := allowedCores(t)
	defer func() {
		if err := Pin(allowed); err != nil {
			t.Error(err)
		}
	}()
	one := unix.CPUSet{}
	for c := range 1024 {
		if allowed.IsSet(c) {
			one.Set(c)
			break
		}
	}
	// More threads, which run until the end of the test.
	const threads = 8
	up, end, down := make(chan bool), make(chan bool), make(chan bool)
	for range threads {
		go func() {
			runtime.LockOSThread() // and end with the goroutine
			up <- true
			<-end
			down <- true
		}()
	}
	for range threads {
		<-up
	}
	if err := Pin(one); err != nil {
		t.Fatal(err)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil || len(tasks) < threads {
		t.Fatalf("%d threads, %v", len(tasks), err)
	}
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		if err != nil {
			t.Fatal(err)
		}
		var got unix.CPUSet
		if err := unix.SchedGetaffinity(id, &got); err == nil && got != one {
			t.Errorf("thread %d is on %s, want %s", id, FormatCores(got), FormatCores(one))
		}
	}
	close(end)
	for range threads {
		<-down
	}
}

func TestPinToNoCore(t *testing.T) {
	err := Pin(coreSet(1000))
	if !errors.Is(err, unix.EINVAL) {
		t.Errorf("got %v", err)
	}
}

func TestProcessor(t *testing.T) {
	for text, want := range map[string]string{
		"processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: other\n": "AMD EPYC",
		"processor\t: 0\nBogoMIPS\t: 50.00\n": "processor",
	} {
		if got := processor(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
