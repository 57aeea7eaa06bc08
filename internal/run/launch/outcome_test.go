package launch

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// The reason for a crash is its reason lines, not the last line of its stacks and registers.
func TestVerdictOfACrash(t *testing.T) {
	for want, dump := range map[string]string{
		"SIGSEGV: segmentation violation; signal arrived during cgo execution": `SIGSEGV: segmentation violation
PC=0x7f m=0 sigcode=1 addr=0x8
signal arrived during cgo execution

goroutine 1 gp=0x1 m=0 mp=0x1 [syscall]:
runtime.cgocall(0x4, 0x5)

rip    0x7f
gs     0x0`,
		"runtime/cgo: pthread_create failed: Resource temporarily unavailable; SIGABRT: abort": `a line of the log
runtime/cgo: pthread_create failed: Resource temporarily unavailable
SIGABRT: abort
PC=0x7f m=3 sigcode=18446744073709551610

goroutine 0 gp=0x1 m=3 mp=0x1 [idle]:
gs     0x0`,
		"unexpected fault address 0x7f00; fatal error: fault; [signal SIGBUS: bus error code=0x2 addr=0x7f00 pc=0x4]": `
unexpected fault address 0x7f00
fatal error: fault
[signal SIGBUS: bus error code=0x2 addr=0x7f00 pc=0x4]

goroutine 7 [running]:
panic: of a stack`,
		"malloc(): corrupted top size; SIGABRT: abort": `malloc(): corrupted top size
SIGABRT: abort
PC=0x7f
gs     0x0`,
		"runtime: failed to create new OS thread (have 5 already; errno=11); fatal error: newosproc": `
runtime: failed to create new OS thread (have 5 already; errno=11)
fatal error: newosproc

runtime stack:
runtime.throw({0x1, 0x9})`,
		"panic: x": `corrupted frames were refused
more of the log
panic: x`,
		"and on": `runtime: a word of no crash
and on`,
	} {
		var v verdict
		for line := range strings.Lines(dump) {
			v.add([]byte(strings.TrimSuffix(line, "\n")))
		}
		if v.String() != want {
			t.Errorf("verdict %q\nwant %q", v.String(), want)
		}
	}
}

func TestExitKilledForMemory(t *testing.T) {
	if got := countOf("nr_free_pages 7\noom_kill_x 9\noom_kill 3\n", "oom_kill"); got != 3 {
		t.Errorf("%d kills, want 3", got)
	}
	const killed = "was killed by SIGKILL (killed)"
	const oom = killed + ": the kernel has killed processes because memory ran out"
	for e, want := range map[Exit]string{
		{Signal: syscall.SIGKILL}:                   killed + "; if nobody did that, memory ran out: see dmesg",
		{Signal: syscall.SIGKILL, OOM: true}:        oom,
		{Signal: syscall.SIGABRT, Said: "panic: x"}: "was killed by SIGABRT (aborted): panic: x",
	} {
		if got := e.String(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// brokenPipe returns the write end of a pipe without a reader.
func brokenPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	r.Close()
	return w
}

// A write to a broken connection, other than stdout and stderr, does not end a run.
func TestSignalsIgnoreABrokenConnection(t *testing.T) {
	signals, stop := NotifySignals()
	defer stop()
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.SIGPIPE)
	defer signal.Stop(came)
	if _, err := brokenPipe(t).Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
	<-came
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if s := <-signals; s != syscall.SIGTERM {
		t.Errorf("the first signal is %v, want %v", s, syscall.SIGTERM)
	}
}

func TestUnread(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if lost(0, int(w.Fd())) {
		t.Error("a pipe that is open passes for one that nobody reads")
	}
	if !lost(0, int(w.Fd()), int(brokenPipe(t).Fd())) {
		t.Error("a pipe that nobody reads passes for one that is open")
	}
}
