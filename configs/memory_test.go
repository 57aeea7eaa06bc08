package configs

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

func TestMemory(t *testing.T) {
	const gb = 1 << 30
	machine := func(files map[string]string) fstest.MapFS {
		m := fstest.MapFS{"proc/meminfo": {Data: []byte(
			"MemTotal:       33554432 kB\nMemFree:        1 kB\nMemAvailable:   16777216 kB\n")}}
		for name, text := range files {
			m[name] = &fstest.MapFile{Data: []byte(text)}
		}
		return m
	}
	group := func(limit string) map[string]string {
		return map[string]string{
			"proc/self/cgroup":                     "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max":           limit + "\n",
			"sys/fs/cgroup/a/memory.current":       fmt.Sprintln(3 * gb),
			"sys/fs/cgroup/a/memory.stat":          fmt.Sprintf("anon %d\ninactive_file %d\n", 2*gb, gb),
			"sys/fs/cgroup/a/b/memory.max":         "max\n",
			"sys/fs/cgroup/a/b/memory.current":     "1\n",
			"sys/fs/cgroup/unrelated/memory.max":   "1\n",
			"sys/fs/cgroup/a/unrelated/memory.max": "1\n",
		}
	}
	// The limit of version 1 is that of the group, of the group above it, or of a container that sees no group above.
	first := func(at string, limit int64) map[string]string {
		files := map[string]string{
			"proc/self/cgroup":                           "5:devices:/\n4:cpu,memory:/a/b\n1:name=systemd:/\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
			"sys/fs/cgroup/memory/memory.stat":           "total_inactive_file 0\n",
		}
		files[at+"/memory.limit_in_bytes"], files[at+"/memory.usage_in_bytes"] = fmt.Sprintln(limit), fmt.Sprintln(3*gb)
		files[at+"/memory.stat"] = fmt.Sprintf("inactive_file 5\ntotal_inactive_file %d\n", gb)
		return files
	}
	above := group(fmt.Sprint(10 * gb)) // of the namespace of groups
	above["proc/self/cgroup"] = "0::/../a/b\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		have  int64
		bound string
	}{
		{"no groups", nil, 16 * gb, "MemAvailable"},
		{"version 1 without files", map[string]string{"proc/self/cgroup": "4:memory:/a\n"}, 16 * gb, "MemAvailable"},
		{"version 1, group", first("sys/fs/cgroup/memory/a/b", 5*gb), 3 * gb,
			"control group limit /sys/fs/cgroup/memory/a/b/memory.limit_in_bytes"},
		{"version 1, group above", first("sys/fs/cgroup/memory/a", 6*gb), 4 * gb,
			"control group limit /sys/fs/cgroup/memory/a/memory.limit_in_bytes"},
		{"version 1, container", first("sys/fs/cgroup/memory", 7*gb), 5 * gb,
			"control group limit /sys/fs/cgroup/memory/memory.limit_in_bytes"},
		{"version 1, no limit", first("sys/fs/cgroup/memory/a/b", 1<<62), 16 * gb, "MemAvailable"},
		{"outside the namespace", above, 8 * gb, "control group limit /sys/fs/cgroup/a/memory.max"},
		{"group without limit", group("max"), 16 * gb, "MemAvailable"},
		{"higher limit", group(fmt.Sprint(64 * gb)), 16 * gb, "MemAvailable"},
		{"lower limit", group(fmt.Sprint(10 * gb)), 8 * gb, "control group limit /sys/fs/cgroup/a/memory.max"},
		{"used up", group(fmt.Sprint(gb)), 0, "control group limit /sys/fs/cgroup/a/memory.max"},
	} {
		root := machine(c.files)
		if err := checkMemory(root, c.have); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		want := fmt.Sprintf("memory: %.2f GiB are needed and %.2f GiB are available (%s)", float64(c.have+gb)/gb,
			float64(c.have)/gb, c.bound)
		if err := checkMemory(root, c.have+gb); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"MemTotal: 1 kB\n", "memory of this machine: proc/meminfo has no line MemAvailable:"},
		{"MemAvailable: much kB\n", `memory of this machine: strconv.ParseInt: parsing "much": invalid syntax`},
	} {
		if err := checkMemory(fstest.MapFS{"proc/meminfo": {Data: []byte(c.text)}}, 1); err == nil ||
			err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	// This machine.
	if err := CheckMemory(1); err != nil {
		t.Error(err)
	}
	if err := CheckMemory(1 << 60); err == nil || !strings.HasPrefix(err.Error(),
		"memory: 1073741824.00 GiB are needed and ") {
		t.Errorf("error %v", err)
	}
}
