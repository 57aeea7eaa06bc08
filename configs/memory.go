package configs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// CheckMemory checks whether this machine and the control group of this process have need bytes available. The error
// says how many bytes are needed and available.
func CheckMemory(need int64) error { return checkMemory(os.DirFS("/"), need) }

// AvailableMemory returns the bytes that CheckMemory compares with, and the source of that bound.
func AvailableMemory() (int64, string, error) { return availableMemory(os.DirFS("/")) }

func checkMemory(root fs.FS, need int64) error {
	have, limit, err := availableMemory(root)
	if err != nil {
		return fmt.Errorf("memory of this machine: %w", err)
	}
	if need > have {
		return fmt.Errorf("memory: %s are needed and %s are available (%s)", gib(need), gib(have), limit)
	}
	return nil
}

func gib(n int64) string { return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30)) }

// availableMemory returns the bytes that are available without swapping, and the source of that bound.
func availableMemory(root fs.FS) (int64, string, error) {
	have, err := field(root, "proc/meminfo", "MemAvailable:")
	if err != nil {
		return 0, "", err
	}
	have *= 1024 // the unit of the file is kB
	bound := "MemAvailable"
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return have, bound, nil
	}
	if err != nil {
		return 0, "", err
	}
	for line := range strings.Lines(string(own)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		for _, h := range hierarchies() {
			if !slices.Contains(strings.Split(controllers, ","), h.controller) {
				continue
			}
			// The limit of any ancestor applies, too. In a container, groups above its own may not be there.
			for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
				left, ok, err := h.left(root, h.mount+dir)
				if err != nil {
					return 0, "", err
				}
				if ok && left < have {
					have, bound = left, "control group limit /"+path.Join(h.mount+dir, h.limit)
				}
				if dir == "/" {
					break
				}
			}
		}
	}
	return have, bound, nil
}

// hierarchy is a place of control groups that limit memory. The limit and the use are files of a group, and files is
// the line of its memory.stat with the part that the kernel reclaims.
type hierarchy struct{ controller, mount, limit, use, files string }

// hierarchies returns those of both versions.
func hierarchies() []hierarchy {
	return []hierarchy{
		{"", "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
		{"memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
	}
}

// left returns how many more bytes a group may use: its limit less its use. Inactive file pages do not count as used
// because the kernel reclaims them. ok is false if the group has no limit.
func (h hierarchy) left(root fs.FS, dir string) (left int64, ok bool, err error) {
	limit, err := integerFile(root, path.Join(dir, h.limit))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, strconv.ErrSyntax) { // the root group has no file; "max"
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	used, err := integerFile(root, path.Join(dir, h.use))
	if err != nil {
		return 0, false, err
	}
	files, err := field(root, path.Join(dir, "memory.stat"), h.files)
	if err != nil {
		return 0, false, err
	}
	return max(0, limit-(used-files)), true, nil
}

func integerFile(root fs.FS, name string) (int64, error) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

// field returns the number that follows label in a file of lines "label number ...".
func field(root fs.FS, name, label string) (int64, error) {
	f, err := root.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if words := strings.Fields(s.Text()); len(words) >= 2 && words[0] == label {
			return strconv.ParseInt(words[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no line %s", name, label)
}
