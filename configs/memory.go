package configs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
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
		return fmt.Errorf("memory: %s are needed and %s are available (%s); take a smaller grid, or more machines",
			gib(need), gib(have), limit)
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
	group, err := ownGroup(root)
	if errors.Is(err, fs.ErrNotExist) {
		return have, bound, nil
	}
	if err != nil {
		return 0, "", err
	}
	// The limit of any ancestor applies, too.
	for dir := path.Join("sys/fs/cgroup", group); strings.HasPrefix(dir, "sys/fs/cgroup"); dir = path.Dir(dir) {
		left, ok, err := groupLeft(root, dir)
		if err != nil {
			return 0, "", err
		}
		if ok && left < have {
			have, bound = left, "control group limit /"+path.Join(dir, "memory.max")
		}
	}
	return have, bound, nil
}

// ownGroup returns the path of this process's version 2 control group.
func ownGroup(root fs.FS) (string, error) {
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return group, nil
		}
	}
	return "", fs.ErrNotExist
}

// groupLeft returns how many more bytes the group may use: its limit less its use. Inactive file pages do not count as
// used because the kernel reclaims them. ok is false if the group has no limit.
func groupLeft(root fs.FS, dir string) (left int64, ok bool, err error) {
	limit, err := integerFile(root, path.Join(dir, "memory.max"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, strconv.ErrSyntax) { // the root group has no file; "max"
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	used, err := integerFile(root, path.Join(dir, "memory.current"))
	if err != nil {
		return 0, false, err
	}
	files, err := field(root, path.Join(dir, "memory.stat"), "inactive_file")
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
