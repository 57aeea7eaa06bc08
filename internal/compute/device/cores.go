package device

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoCores reports that this process may use none of the cores near a GPU.
var ErrNoCores = errors.New("no core near the GPU is among those allowed")

// Near returns the cores near a GPU that this process may use. The error is ErrNoCores where a container, a batch
// system or taskset keeps the process away from all of them. The process is then best not pinned.
func Near(inventory Inventory, g GPU) (unix.CPUSet, error) {
	near, err := inventory.Cores(g)
	if err != nil {
		return unix.CPUSet{}, err
	}
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return unix.CPUSet{}, fmt.Errorf("read the allowed cores: %w", err)
	}
	both := near
	for i := range both {
		both[i] &= allowed[i]
	}
	if both.Count() == 0 {
		return unix.CPUSet{}, fmt.Errorf("%w: near are %s, allowed are %s", ErrNoCores, FormatCores(near),
			FormatCores(allowed))
	}
	return both, nil
}

// Pin restricts all threads of this process, and all that they start later, to the given cores.
func Pin(cores unix.CPUSet) error {
	pinned := map[int]bool{}
	for again := true; again; { // a thread not pinned yet may have started another one meanwhile
		again = false
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("pin to cores %s: %w", FormatCores(cores), err)
		}
		for _, task := range tasks {
			id, err := strconv.Atoi(task.Name())
			if err != nil || pinned[id] {
				continue
			}
			err = unix.SchedSetaffinity(id, &cores)
			if err != nil && !errors.Is(err, unix.ESRCH) { // that thread has ended
				return fmt.Errorf("pin thread %d to cores %s: %w", id, FormatCores(cores), err)
			}
			pinned[id], again = true, true
		}
	}
	return nil
}

// FormatCores formats a set of cores as "0-3,8,10-11".
func FormatCores(cores unix.CPUSet) string {
	var b strings.Builder
	size := len(cores) * bits.UintSize
	for first := 0; first < size; first++ {
		if !cores.IsSet(first) {
			continue
		}
		last := first
		for last+1 < size && cores.IsSet(last+1) {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(first))
		if last > first {
			b.WriteString("-" + strconv.Itoa(last))
		}
		first = last
	}
	return b.String()
}

// Processor returns the name of this machine's processor, or "processor" if the system does not tell it.
func Processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "processor"
	}
	return processor(string(text))
}

func processor(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor"
}
