package configs

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"jacobi/solver"
)

func TestValidateAccepts(t *testing.T) {
	if err := Validate(odd); err != nil {
		t.Error(err)
	}
	c := Default()
	c.Run.Name = strings.Repeat("ü", 200)
	c.Problem.Initial = "x\n+ y"
	c.Solver.Tolerance = 0
	c.Output = Output{Dir: ".", PictureScale: "sqrt"}
	c.Checkpoint = Checkpoint{Every: Interval{Sweeps: 1}, Dir: "x", Keep: 1, Resume: "y"}
	c.Grid.NX, c.Grid.NY, c.Run.Ranks = 3, 3, 1
	if err := Validate(c); err != nil {
		t.Error(err)
	}
}

func TestValidateRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Grid.NX = 2 }, `grid.nx 2: 3 to 2147483647 are allowed`},
		{func(c *Config) { c.Grid.NY = -1 }, `grid.ny -1: 3 to 2147483647 are allowed`},
		{func(c *Config) { c.Grid.NX = math.MaxInt64 }, `grid.nx 9223372036854775807: 3 to 2147483647 are allowed`},
		{func(c *Config) { c.Grid.NX, c.Grid.NY = math.MaxInt32, math.MaxInt32 },
			`grid.nx 2147483647: with grid.ny 2147483647 a field has more bytes than 64 bits can count`},
		{func(c *Config) { c.Grid.DType = "float16" }, `grid.dtype "float16": allowed are float32 and float64`},
		{func(c *Config) { c.Run.Name = strings.Repeat("n", 20000) },
			`run.name "nnnnnnnnnnnnnnnnnnnn…": 20000 characters; at most 200 are allowed`},
		{func(c *Config) { c.Run.Name = "\x1b]0;a\a\u202e" },
			`run.name "\x1b]0;a\a\u202e": control characters are not allowed`},
		{func(c *Config) { c.Output.Dir = "a\nb" }, `output.dir "a\nb": control characters are not allowed`},
		{func(c *Config) { c.Checkpoint.Resume = "\u009b" },
			`checkpoint.resume "\u009b": control characters are not allowed`},
		{func(c *Config) { c.Run.Ranks = 0 }, `run.ranks 0: at least 1 is wanted`},
		{func(c *Config) { c.Grid.NY, c.Run.Ranks = 64, 9 },
			`run.ranks 9: grid.ny 64 allows at most 8 (stripes are whole groups of 8 rows)`},
		{func(c *Config) { c.Run.Liveness = time.Millisecond }, `run.liveness 1ms: at least 1s is wanted`},
		{func(c *Config) { c.Run.Ranks = math.MaxInt64 },
			`run.ranks 9223372036854775807: grid.ny 16384 allows at most 2048 (stripes are whole groups of 8 rows)`},
		{func(c *Config) { c.Grid.NY, c.Run.Ranks, c.Halo.Depth = 64, 8, 8 },
			`halo.depth 8: with run.ranks 8 on grid.ny 64 the lowest stripe has 7 rows; 1 to 7 are allowed, or ` +
				`run.ranks up to 4`},
		{func(c *Config) { c.Grid.NY, c.Halo.Depth = 64, 10000 },
			`halo.depth 10000: with run.ranks 4 on grid.ny 64 the lowest stripe has 15 rows; 1 to 15 are allowed`},
		{func(c *Config) { c.Halo.Depth = -1 }, `halo.depth -1: at least 0 is wanted`},
		{func(c *Config) { c.Problem.Preset = "gtc" }, `problem.preset "gtc": allowed are gtc2019 and dirichlet`},
		{func(c *Config) { c.Problem.Top = "1" }, `problem.top "1" and problem.bottom "periodic" (with preset ` +
			`gtc2019): both or neither can be periodic`},
		{func(c *Config) { c.Problem.Preset, c.Problem.Top = "dirichlet", "periodic" },
			`problem.top "periodic" and problem.bottom "0" (with preset dirichlet): both or neither can be periodic`},
		{func(c *Config) { c.Problem.Left = "periodic" },
			`problem.left "periodic": a value or an expression is wanted; only top and bottom can be periodic`},
		{func(c *Config) { c.Solver.Tolerance = -1e-8 },
			`solver.tolerance -1e-08: a finite number of at least 0 is wanted`},
		{func(c *Config) { c.Solver.Tolerance = math.NaN() },
			`solver.tolerance NaN: a finite number of at least 0 is wanted`},
		{func(c *Config) { c.Solver.Tolerance = math.Inf(1) },
			`solver.tolerance +Inf: a finite number of at least 0 is wanted`},
		{func(c *Config) { c.Solver.MaxIterations = 0 }, `solver.max_iterations 0: at least 1 is wanted`},
		{func(c *Config) { c.Halo.Transport = "tcp" }, `halo.transport "tcp": allowed are auto, nats and p2p`},
		{func(c *Config) { c.Halo.Timeout = 0 }, `halo.timeout 0s: more than 0s is wanted`},
		{func(c *Config) { c.Device.Backend = "gpu" }, `device.backend "gpu": allowed are auto, cpu and cuda`},
		{func(c *Config) { c.Device.Threads = -1 }, `device.threads -1: at least 0 is wanted`},
		{func(c *Config) { c.Device.Kernel = "sse" },
			`device.kernel "sse": allowed are auto, portable, avx2 and avx512`},
		{func(c *Config) { c.Output.PictureScale = "cubic" },
			`output.picture_scale "cubic": allowed are auto, linear, log and sqrt`},
		{func(c *Config) { c.Device.MPS = "on" }, `device.mps "on": allowed are auto and off`},
		{func(c *Config) { c.Device.Select = "local-rank" },
			`device.select "local-rank": allowed are round-robin, least-utilized, most-free-memory, coolest and ` +
				`least-power`},
		{func(c *Config) { c.NATS.URL = "localhost:4222" },
			`nats.url "localhost:4222": nats://host:port is wanted; allowed are nats, tls, ws and wss`},
		{func(c *Config) { c.NATS.URL = "http://u:p@h" },
			`nats.url "http://hidden@h": nats://host:port is wanted; allowed are nats, tls, ws and wss`},
		{func(c *Config) { c.NATS.URL = "nats://" },
			`nats.url "nats://": nats://host:port is wanted; allowed are nats, tls, ws and wss`},
		{func(c *Config) { c.NATS = NATS{URL: "nats://h,nats://u:p@h", Creds: "c", NKey: "n"} },
			`a user in nats.url and nats.creds and nats.nkey: one of them is wanted`},
		{func(c *Config) { c.NATS.Port = 70000 }, `nats.port 70000: 0 (any that is free) to 65535 are allowed`},
		{func(c *Config) { c.NATS.Advertise = "gate:4222" },
			`nats.advertise "gate:4222": names or addresses without a port are wanted, with commas between them`},
		{func(c *Config) { c.NATS = NATS{URL: "nats://h", User: "u"} },
			`nats.user and nats.password_file: both or neither are wanted`},
		{func(c *Config) { c.NATS = NATS{URL: "tls://h", Key: "k"} },
			`nats.cert and nats.key: both or neither are wanted`},
		{func(c *Config) { c.Output.Dir = "" }, `output.dir "": a directory is wanted ("." for the current one)`},
		{func(c *Config) { c.Output.Field = "a/b" },
			`output.field "a/b": a plain file name is wanted; output.dir says where`},
		{func(c *Config) { c.Output.Report = ".." },
			`output.report "..": a plain file name is wanted; output.dir says where`},
		{func(c *Config) { c.Output.Report = "field.npy" },
			`output.report "field.npy": the name has to end in .json, or be "-" for standard output`},
		{func(c *Config) { c.Output.Field = "a.txt" }, `output.field "a.txt": the name has to end in .npy`},
		{func(c *Config) { c.Output.Field = "-" }, `output.field "-": the name has to end in .npy`},
		{func(c *Config) { c.Output.Picture = "a.gif" },
			`output.picture "a.gif": the name has to end in .png, .jpg or .jpeg`},
		{func(c *Config) { c.Output.History = "npy" },
			`output.history "npy": the name has to end in .csv, or be "-" for standard output`},
		{func(c *Config) { c.Output.History, c.Output.Report = "-", "-" },
			`output.report "-": output.history goes to standard output already`},
		{func(c *Config) { c.Output.History = strings.Repeat("x", 200) + ".csv" },
			`output.history: a name of 204 bytes; at most 120 are allowed`},
		{func(c *Config) { c.Checkpoint.Every.Sweeps = 5 },
			`checkpoint.every "5 sweeps": checkpoint.dir or checkpoint.nats has to say where`},
		{func(c *Config) { c.Checkpoint.Dir, c.Checkpoint.NATS, c.NATS.URL = "a", "b", "nats://h" },
			`checkpoint.dir "a", checkpoint.nats "b": one of them is wanted`},
		{func(c *Config) { c.Checkpoint.Dir = "nats:b" },
			`checkpoint.dir "nats:b": a directory is wanted; checkpoint.nats takes a bucket`},
		{func(c *Config) { c.Checkpoint.NATS = "b" },
			`checkpoint.nats "b": nats.url has to name a server with JetStream; the launcher's own keeps nothing`},
		{func(c *Config) { c.Checkpoint.NATS, c.NATS.URL = "a.b", "nats://h" },
			`checkpoint.nats "a.b": 1 to 200 letters, digits, - and _ are allowed`},
		{func(c *Config) { c.Checkpoint.Resume = "nats:" },
			`checkpoint.resume "nats:": after nats: 1 to 200 letters, digits, - and _ are allowed`},
		{func(c *Config) { c.Checkpoint.Keep = 0 }, `checkpoint.keep 0: at least 1 is wanted`},
		{func(c *Config) { c.Log.Level = "loud" }, `log.level "loud": allowed are debug, info, warn and error`},
		{func(c *Config) { c.Log.Format = "xml" }, `log.format "xml": allowed are console and json`},
		{func(c *Config) { c.Grid.NX, c.Run.Ranks, c.Halo.Timeout = 1, -1, -time.Second },
			"grid.nx 1: 3 to 2147483647 are allowed\nrun.ranks -1: at least 1 is wanted\nhalo.timeout -1s: more than " +
				"0s is wanted"},
	} {
		conf := Default()
		c.change(&conf)
		if err := Validate(conf); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// Validate and solver.Partition agree on what is possible, also for the highest mesh.
func TestValidatePartition(t *testing.T) {
	for ny := 3; ny < 100; ny++ {
		for ranks := 1; ranks < 15; ranks++ {
			for depth := 1; depth < 20; depth++ {
				c := Default()
				c.Grid.NY, c.Run.Ranks, c.Halo.Depth = ny, ranks, depth
				stripes, perr := solver.Partition(ny, ranks, depth)
				if err := Validate(c); (err == nil) != (perr == nil) {
					t.Fatalf("ny %d, ranks %d, depth %d: %v, Partition %v", ny, ranks, depth, err, perr)
				}
				low := ny
				for _, s := range stripes {
					low = min(low, s.Rows())
				}
				if perr == nil && low != solver.MinRows(ny, ranks) {
					t.Fatalf("ny %d, ranks %d: lowest stripe %d rows, MinRows says %d", ny, ranks, low,
						solver.MinRows(ny, ranks))
				}
			}
		}
	}
	c := Default()
	c.Grid.NX, c.Grid.NY, c.Run.Ranks, c.Halo.Depth = 3, math.MaxInt32, 1<<28, 1<<20
	want := "halo.depth 1048576: with run.ranks 268435456 on grid.ny 2147483647 the lowest stripe has 6 rows; 1 " +
		"to 6 are allowed, or run.ranks up to 2047"
	if err := Validate(c); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestResolve(t *testing.T) {
	side := "sin(2 * float32(pi) * iy / (ny - 1))"
	for _, c := range []struct {
		p     Problem
		dtype string
		want  Problem
	}{
		{Problem{Preset: "gtc2019"}, "float32", Problem{"gtc2019", side, side, "periodic", "periodic", "0"}},
		{Problem{Preset: "gtc2019", Left: "1"}, "float64",
			Problem{"gtc2019", "1", "sin(2 * pi * iy / (ny - 1))", "periodic", "periodic", "0"}},
		{Problem{Preset: "dirichlet", Initial: "a.npy"}, "float32", Problem{"dirichlet", "0", "0", "1", "0", "a.npy"}},
	} {
		if got, err := c.p.Resolve(c.dtype); err != nil || got != c.want {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

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
	for _, c := range []struct {
		name  string
		files map[string]string
		have  int64
		bound string
	}{
		{"no groups", nil, 16 * gb, "MemAvailable"},
		{"version 1 alone", map[string]string{"proc/self/cgroup": "4:memory:/a\n"}, 16 * gb, "MemAvailable"},
		{"group without limit", group("max"), 16 * gb, "MemAvailable"},
		{"higher limit", group(fmt.Sprint(64 * gb)), 16 * gb, "MemAvailable"},
		{"lower limit", group(fmt.Sprint(10 * gb)), 8 * gb, "control group limit /sys/fs/cgroup/a/memory.max"},
		{"used up", group(fmt.Sprint(gb)), 0, "control group limit /sys/fs/cgroup/a/memory.max"},
	} {
		root := machine(c.files)
		if err := checkMemory(root, c.have); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		want := fmt.Sprintf("memory: %.2f GiB are needed and %.2f GiB are available (%s); take a smaller grid, or "+
			"more machines",
			float64(c.have+gb)/gb, float64(c.have)/gb, c.bound)
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
