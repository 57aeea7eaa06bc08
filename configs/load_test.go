package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mustMerge loads data as the run file name.
func mustMerge(t *testing.T, name, data string, o Options) Config {
	t.Helper()
	o.File = name
	c, err := merge(o, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	want := Config{
		Run:     Run{Ranks: 1, Liveness: 10 * time.Second, Balance: "equal"},
		Grid:    Grid{NX: 16384, NY: 16384, DType: "float32", Width: 1},
		Problem: Problem{Preset: "gtc2019"},
		Solver: Solver{Method: "jacobi", Why: presetWhy, Acceleration: "auto", Tolerance: 1e-8, DefaultTolerance: true,
			MaxIterations: 1000, NormEvery: 1, Start: "initial"},
		Halo:   Halo{Transport: "auto", Timeout: 30 * time.Second, Compress: "auto", Direct: Direct{Encrypt: "auto"}},
		Device: Device{Backend: "auto", Kernel: "auto", Select: "round-robin", Pin: true, MPS: "auto"},
		Output: Output{
			Dir: "out", Field: "field.npy", Picture: "field.png", History: "history.csv", Report: "report.json",
			PictureScale: "auto", Results: true,
		},
		Trace: Trace{Passes: 500},
		Log:   Log{Level: "info", Format: "console"},

		Checkpoint: Checkpoint{Keep: 2},
	}
	got, err := Load(Options{})
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, empty := range map[string]string{"a.yaml": "", "b.yml": "# nothing\n", "c.toml": "", "d.json": "{}",
		"e.yaml": "grid:\n"} {
		if got := mustMerge(t, name, empty, Options{}); got != want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if err := Validate(want); err != nil {
		t.Error(err)
	}
}

func TestPrecedence(t *testing.T) {
	file := "grid: {nx: 10, ny: 20}\nrun: {ranks: 2, name: file}\n"
	env := []string{"PATH=/bin", "JACOBI_GRID_NX=11", "JACOBI_RUN_NAME=environment", "JACOBI_GRID_NX=12",
		"JACOBI_SOLVER_MAX_ITERATIONS=7"}
	set := []string{"grid.nx=13", "run.name=a=b", "grid.nx=14", "HALO.Depth=3"}
	for _, c := range []struct {
		name     string
		o        Options
		nx, ny   int
		run      string
		max, dep int
	}{
		{"file", Options{}, 10, 20, "file", 1000, 0},
		{"environment", Options{Environ: env}, 12, 20, "environment", 7, 0},
		{"set", Options{Environ: env, Set: set}, 14, 20, "a=b", 7, 3},
	} {
		got := mustMerge(t, "run.yaml", file, c.o)
		want := Default()
		want.Run = Run{c.run, 2, 10 * time.Second, BalanceEqual}
		want.Grid.NX, want.Grid.NY = c.nx, c.ny
		want.Solver.MaxIterations, want.Halo.Depth = c.max, c.dep
		if got != want {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}

func TestIdentityVariablesAreNotKeys(t *testing.T) {
	got, err := Load(Options{Environ: []string{
		"JACOBI_RANK=1", "JACOBI_SIZE=2", "JACOBI_LOCAL_RANK=1", "JACOBI_LOCAL_SIZE=2", "JACOBI_RUN_ID=abc",
		"JACOBI_GRID=4", "JACOBI_OTHER_THING=1", "jacobi_grid_nx=5",
	}})
	if err != nil || got != Default() {
		t.Errorf("got %+v, %v", got, err)
	}
}

// All formats and all spellings of a value give the same configuration and the same hash.
func TestSpellings(t *testing.T) {
	want := Default()
	want.Grid = Grid{10000, 64, "float64", "float64", 1, 0}
	want.Solver.Why, want.Solver.Method, want.Solver.DefaultTolerance = otherWhy, Multigrid, false
	want.Problem = Problem{"dirichlet", "0.5", "0.001", "sin(pi*y)", "1", "-2e+07", "", "", "", "", "", "", ""}
	want.Solver.Tolerance = 1e-6
	want.Halo = Halo{"nats", 8, 90 * time.Second, "always", Direct{"[fd00::/8]:47000-47099", "never"}}
	for _, c := range []struct{ name, data string }{
		{"numbers.yaml", "grid: {nx: 1e4, ny: 64, dtype: float64}\nproblem: {preset: dirichlet, left: 0.5, right: " +
			"1e-3, top: sin(pi*y), bottom: 1, initial: -2e7}\n" +
			"solver: {tolerance: 1e-6}\nhalo: {transport: nats, depth: 8, timeout: 1m30s,\n" +
			" compress: always, direct: {listen: '[fd00::/8]:47000-47099', encrypt: never}}"},
		{"text.yml", "GRID: {NX: '10000', Ny: '64', dtype: 'float64'}\nproblem: {preset: dirichlet, left: '.50', " +
			"right: '1e-3', top: 'sin(pi*y)', bottom: '1.0', initial: '-20000000'}\n" +
			"solver: {tolerance: '0.000001'}\nhalo: {transport: nats, depth: '8', timeout: 90s,\n" +
			" Compress: 'always', Direct: {Listen: '[fd00::/8]:47000-47099', encrypt: 'never'}}"},
		{"run.toml", "[grid]\nnx = 10_000\nny = 64\ndtype = 'float64'\n[problem]\npreset = 'dirichlet'\nleft = " +
			"0.5\nright = 1e-3\ntop = 'sin(pi*y)'\nbottom = 1\ninitial = -2e7\n" +
			"[solver]\ntolerance = 1e-6\n[halo]\ntransport = 'nats'\ndepth = 8\ntimeout = '90s'\n" +
			"compress = 'always'\n" +
			"[halo.direct]\nlisten = '[fd00::/8]:47000-47099'\nencrypt = 'never'"},
		{"run.JSON", `{"grid": {"nx": 10000, "ny": 64, "dtype": "float64"},
			"problem": {"preset": "dirichlet", "left": 0.5, "right": 1e-3,
				"top": "sin(pi*y)", "bottom": "1", "initial": -2e7},
			"solver": {"tolerance": 1e-6}, "halo": {"transport": "nats", "depth": 8, "timeout": "1.5m",
				"compress": "always",
				"direct": {"listen": "[fd00::/8]:47000-47099", "encrypt": "never"}}}`},
	} {
		got := mustMerge(t, c.name, c.data, Options{})
		if got != want {
			t.Errorf("%s: got %+v", c.name, got)
		}
		if Hash(got) != Hash(want) {
			t.Errorf("%s: another hash", c.name)
		}
	}
	for _, depth := range []string{"auto", "'auto'", `"auto"`} {
		if got := mustMerge(t, "run.yaml", "halo: {depth: "+depth+"}", Options{}); got.Halo.Depth != 0 {
			t.Errorf("depth %s: %d", depth, got.Halo.Depth)
		}
	}
	for written, want := range map[string]string{"0": "0", "00": "0", "0.5": "0.5", "-0.25": "-0.25", "1e3": "1000",
		"0o17": "0o17", "08.5": "8.5", "010": "10", "'010'": "10", "&side 7": "7", "!!str 5": "5"} {
		if got := mustMerge(t, "run.yaml", "problem: {left: "+written+"}", Options{}); got.Problem.Left != want {
			t.Errorf("left %s: %q, want %q", written, got.Problem.Left, want)
		}
	}
	for _, fixed := range []string{"true", "'true'"} {
		if got := mustMerge(t, "run.yaml", "problem: {fixed: "+fixed+"}", Options{}); got.Problem.Fixed != "true" {
			t.Errorf("fixed %s: %q", fixed, got.Problem.Fixed)
		}
	}
}

func TestUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		pipe: "run file: open " + pipe + ": a named pipe, not a regular file",
		"-":  "run file: standard input cannot be shared by ranks; name a file",

		filepath.Join(dir, "absent.yaml"): "run file: open " + filepath.Join(dir, "absent.yaml") +
			": no such file or directory",
		big: "run file: read " + big + ": more than 1048576 bytes",
	} {
		if _, err := Load(Options{File: path}); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestStandardInput(t *testing.T) {
	for _, text := range []string{"grid: {nx: 77}\n", `{"grid": {"nx": 77}}`} {
		if c, err := Load(Options{File: "-", Stdin: strings.NewReader(text)}); err != nil || c.Grid.NX != 77 {
			t.Errorf("%s: grid.nx %d, %v", text, c.Grid.NX, err)
		}
	}
	for text, want := range map[string]string{
		"grid: {nx: x}": `grid.nx "x" (file -): must be an integer, 3 to 2147483647`,

		strings.Repeat("#", maxFile+1): "run file: standard input has more than 1048576 bytes",
	} {
		if _, err := Load(Options{File: "-", Stdin: strings.NewReader(text)}); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// Editors on Windows write UTF-16, or UTF-8 with a byte order mark.
func TestByteOrderMarks(t *testing.T) {
	little := func(text string) string { return "\xff\xfe" + strings.Join(strings.Split(text, ""), "\x00") + "\x00" }
	big := func(text string) string { return "\xfe\xff\x00" + strings.Join(strings.Split(text, ""), "\x00") }
	for name, text := range map[string]string{"run.yaml": "grid:\n  nx: 77\n", "run.toml": "[grid]\nnx = 77\n",
		"run.json": `{"grid": {"nx": 77}}`} {
		for _, data := range []string{text, "\ufeff" + text, little(text), big(text)} {
			if c := mustMerge(t, name, data, Options{}); c.Grid.NX != 77 {
				t.Errorf("%s %q: grid.nx %d", name, data, c.Grid.NX)
			}
		}
	}
}

func TestStrayVariables(t *testing.T) {
	got := StrayVariables([]string{
		"JACOBI_FOO=1", "PATH=/bin", "JACOBI_GRID_NX=5", "JACOBI_GRID_NXX=5", "JACOBI_GRID=5", "JACOBI_RANK=0",
		"JACOBI_RNK=0",
		"JACOBI_SERVICE_HOST=10.0.0.1", "JACOBI_PORT_4222_TCP=tcp://10.0.0.1:4222",
	}, []string{"JACOBI_RANK"})
	want := []string{
		"environment JACOBI_FOO: no key has this variable, and it is ignored",
		"environment JACOBI_GRID: no key has this variable, and it is ignored",
		"environment JACOBI_RNK: no key has this variable, and it is ignored; did you mean JACOBI_RANK?",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRunFiles(t *testing.T) {
	var seen int
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); ext != ".yaml" && ext != ".toml" && ext != ".json" {
			continue
		}
		seen++
		c, err := Load(Options{File: f.Name()})
		if err != nil {
			t.Error(err)
			continue
		}
		if err := Validate(c); err != nil {
			t.Errorf("%s: %v", f.Name(), err)
		}
	}
	if seen != 13 {
		t.Errorf("%d run files, want 13", seen)
	}
	if c, err := Load(Options{File: "gtc2019.yaml"}); c != Default() || err != nil {
		t.Errorf("gtc2019.yaml is not the default: %+v, %v", c, err)
	}
}

// FuzzLoad checks that no file makes Load panic, and that a valid configuration can be printed and loaded again.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"quickstart.yaml", "gtc2019.yaml", "dirichlet.toml", "cylinder.json"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Ext(name), data)
	}
	f.Fuzz(func(t *testing.T, ext string, data []byte) {
		c, err := merge(Options{File: "run" + ext}, data)
		if err != nil || Validate(c) != nil || c.NATS != c.NATS.Public() {
			return
		}
		y, err := YAML(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := merge(Options{File: "run.yaml"}, y)
		again.Solver.Why, again.Grid.Named = c.Solver.Why, c.Grid.Named // what is written is named
		if err != nil || again != c || Hash(again) != Hash(c) {
			t.Errorf("%v\n%s\ngot  %#v\nwant %#v", err, y, again, c)
		}
	})
}

// repeated returns text n times, with the number in place of each %d, and commas between.
func repeated(text string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(text, "%d", fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

// unknowns are the lines about keys that a file has.
func unknowns(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "unknown key %s (file run.yaml): %s\n", name, sectionsHint)
	}
	return b.String()
}

// A file that is far larger than any run is refused at once, and in few words.
func TestLargeFiles(t *testing.T) {
	long := strings.Repeat("x", 900_000)
	for _, c := range []struct{ name, data, want string }{
		{"run.yaml", "a: &a {x: 1}\ngrid:\n  <<: [" + repeated("*a", 20_000) + "]",
			"run file run.yaml: line 3: more than 100 aliases"},
		{"run.yaml", "grid: {nx: [" + repeated("1", 20_000) + "]}",
			"grid.nx [...] (file run.yaml): must be an integer, 3 to 2147483647"},
		{"run.yaml", "a: {" + repeated("k%d: 1", 80_000) + "}", "run file run.yaml: line 1: more than 5000 keys"},
		{"run.yaml", "a: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000),
			"run file run.yaml: line 1: more than 10 sections within one another"},
		{"run.json", "{" + repeated(`"k%d": 1`, 80_000) + "}",
			"run file run.json: line 1, column 53899: more than 5000 keys"},
		{"run.json", strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000),
			"run file run.json: line 1, column 52: more than 10 sections within one another"},
		{"run.json", strings.Repeat(`{"a":`, 90_000),
			"run file run.json: line 1, column 52: more than 10 sections within one another"},
		{"run.json", `{"` + long + `": 1}`, "unknown key " + long[:200] + "… (file run.json): " + sectionsHint},
		{"run.json", `{"\u001b[31m": 1}`, `unknown key \x1b[31m (file run.json): ` + sectionsHint},
		{"run.toml", strings.ReplaceAll(repeated("grid.k%d = 1", 60_000), ",", "\n"),
			"run file run.toml: more than 5000 keys"},
		{"run.toml", strings.ReplaceAll(repeated("[k%d]", 60_000), ",", "\n"),
			"run file run.toml: more than 5000 keys"},
		{"run.yaml", "zzz: {" + repeated("a%d: 1", 9) + "}\n" + strings.ReplaceAll(repeated("zzzz%d: 1", 4000), ",",
			"\n"), "unknown key zzz (file run.yaml): " + sectionsHint + "\n" +
			unknowns("zzzz0", "zzzz1", "zzzz10", "zzzz100", "zzzz1000", "zzzz1001", "zzzz1002", "zzzz1003",
				"zzzz1004") +
			"and 3,991 more faults"},
	} {
		start := time.Now()
		_, err := merge(Options{File: c.name}, []byte(c.data))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s %.40q:\ngot  %v\nwant %s", c.name, c.data, err, c.want)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s %.40q: refused after %v", c.name, c.data, took)
		}
	}
}
