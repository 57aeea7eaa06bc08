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
	c, err := mergeConfig(o, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mergeConfig is Load with data for the contents of the run file.
func mergeConfig(o Options, data []byte) (Config, error) {
	b, err := merge(o, data)
	if err != nil {
		return Config{}, err
	}
	return b.Config(), nil
}

func TestDefaults(t *testing.T) {
	want := Default() // TestYAMLText has the values
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
	want.Grid = Grid{10000, 64, "float64", "float64", "", 1, 0, ""}
	want.Solver.Why, want.Solver.Method, want.Solver.DefaultTolerance = otherWhy, Multigrid, false
	want.Problem = Problem{"dirichlet", "0.5", "0.001", "sin(pi*y)", "1", "-2e+07", "", "", "", "", "", "", "", ""}
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
	if seen != 25 {
		t.Errorf("%d run files, want 25", seen)
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
		c, err := mergeConfig(Options{File: "run" + ext}, data)
		if err != nil || Validate(c) != nil || c.NATS != c.NATS.Public() {
			return
		}
		y, err := YAML(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := mergeConfig(Options{File: "run.yaml"}, y)
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

// noKey is what an unknown key is told without a near one.
const noKey = "launcher --dry-run prints all keys"

// A file that is far larger than any run is refused at once, and in few words.
func TestLargeFiles(t *testing.T) {
	long := strings.Repeat("x", 900_000)
	bomb := "a0: &a0 {x: 1}\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d {x: *a%d, y: *a%d}\n", i+1, i+1, i, i)
	}
	many := ""
	for _, i := range []int{0, 1, 10, 100, 1000, 10000, 10001, 10002, 10003, 10004} {
		many += fmt.Sprintf("unknown key k%d (file F): %s\n", i, noKey)
	}
	many += "and 79990 more faults"
	const deep = "run file F: line 1, column 10001: invalid character '[' exceeded max depth"
	for _, c := range []struct{ name, data, want string }{
		{"run.yaml", bomb, "run file F: line 4: more than 100 aliases"},
		{"run.yaml", "grid: {nx: [" + repeated("1", 20_000) + "]}",
			"grid.nx [...] (file F): must be an integer, 3 to 2147483647"},
		{"run.yaml", "{" + repeated("k%d: 1", 80_000) + "}", many},
		{"run.yaml", "a: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000),
			"unknown key a (file F): " + noKey},
		{"run.json", "{" + repeated(`"k%d": 1`, 80_000) + "}", many},
		{"run.json", strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000),
			"run file F: line 1, column 52: more than 10 objects within one another"},
		{"run.json", strings.Repeat("[", 90_000), deep},
		{"run.json", `{"` + long + `": 1}`, "unknown key " + long[:200] + "… (file F): " + noKey},
		{"run.json", `{"\u001b[31m": 1}`, `unknown key \x1b[31m (file F): ` + noKey},
		{"run.toml", strings.ReplaceAll(repeated("grid.k%d = 1", 60_000), ",", "\n"),
			"run file F: more than 5000 keys"},
		{"run.toml", strings.ReplaceAll(repeated("[k%d]", 60_000), ",", "\n"), "run file F: more than 5000 keys"},
	} {
		start := time.Now()
		_, err := mergeConfig(Options{File: c.name}, []byte(c.data))
		if want := strings.ReplaceAll(c.want, "F", c.name); err == nil || err.Error() != want {
			t.Errorf("%s %.40q:\ngot  %.2000v\nwant %s", c.name, c.data, err, want)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s %.40q: refused after %v", c.name, c.data, took)
		}
	}
}

// refusals are run files, with other sources, that Load refuses, and its errors.
var refusals = []struct {
	name, data string
	o          Options
	want       string
}{
	{"run.yaml", "solver: {nx: 5}", Options{}, `unknown key solver.nx (file run.yaml): did you mean grid.nx?`},
	{"", "", Options{Set: []string{"run=5"}}, "unknown key run (--set): " + noKey},
	{"run.yaml", "gird: {nx: 5}", Options{}, `unknown key gird (file run.yaml): did you mean grid?`},
	{"run.yaml", "other: {}", Options{}, "unknown key other (file run.yaml): " + noKey},
	{"", "", Options{Environ: []string{"JACOBI_SOLVER_MAXITERATIONS=5", "JACOBI_LOG_SHADE=1"}},
		"unknown key solver.maxiterations (environment JACOBI_SOLVER_MAXITERATIONS): did you mean " +
			"solver.max_iterations?\nunknown key log.shade (environment JACOBI_LOG_SHADE): " + noKey},
	{"", "", Options{Set: []string{"run.rank=5"}}, `unknown key run.rank (--set): did you mean run.ranks?`},
	{"", "", Options{Set: []string{"grid.nx"}}, `--set grid.nx: must be key=value`},
	{"run.yaml", "grid: 5", Options{}, `grid "5" (file run.yaml): must be a section with keys`},
	{"run.yaml", "grid: [1, {a: 2}]", Options{}, `grid [...] (file run.yaml): must be a section with keys`},
	{"run.yaml", "grid: {nx: 5, NX: 6}", Options{}, `grid.nx (file run.yaml): given twice, also as grid.NX`},
	{"run.yaml", "grid: {nx: {value: 5}}", Options{},
		`grid.nx {...} (file run.yaml): must be an integer, 3 to 2147483647`},
	{"run.json", `{"solver": {"max_iterations": 1.5}}`, Options{},
		`solver.max_iterations 1.5 (file run.json): must be an integer, 1 to 9223372036854775807`},
	{"run.yaml", "grid: {nx: }", Options{},
		`grid.nx null (file run.yaml): must have a value`},
	{"run.yaml", "solver: {tolerance: small}", Options{},
		`solver.tolerance "small" (file run.yaml): must be a number that a float64 holds`},
	{"run.yaml", "grid: {height: 0}\noutput: {results: yes}", Options{},
		`grid.height "0" (file run.yaml): must be auto or a number above 0` + "\n" +
			`output.results "yes" (file run.yaml): must be true or false`},
	{"run.yaml", "halo: {timeout: 30, depth: 0}", Options{},
		`halo.depth "0" (file run.yaml): must be auto or an integer of at least 1` + "\n" +
			`halo.timeout "30" (file run.yaml): must be a duration with its unit, such as 30s or 2m`},
	{"run.yaml", "checkpoint: {every: -5m}\noutput: {every: 0, probes_every: 1m}", Options{},
		`checkpoint.every "-5m" (file run.yaml): must be 100, "100 sweeps", "5 cycles" or a duration, such as 10m` +
			"\n" + `output.every "0" (file run.yaml): must be 100, "100 sweeps" or "5 cycles"` + "\n" +
			`output.probes_every "1m" (file run.yaml): must be 100, "100 sweeps" or "5 cycles"`},
	{"", "", Options{Set: []string{"problem.top=NaN"}},
		`problem.top "NaN" (--set): must be an expression or a number that a float64 holds`},
	{"run.toml", "[run]\nname = 2020-01-01", Options{}, `run.name 2020-01-01 (file run.toml): must be text`},
	{"", "", Options{Set: []string{"run.name=\xff"}},
		`run.name "\xff" (--set): must be text in UTF-8 without zero bytes`},
	{"run.yaml", "nats: {url: [nats://user:secret@host]}", Options{},
		`nats.url "hidden" (file run.yaml): must be text`},
	{"run.ini", "", Options{}, `run file run.ini: extension ".ini": allowed are .yaml, .yml, .toml and .json`},
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range refusals {
		c.o.File = c.name
		if _, err := mergeConfig(c.o, []byte(c.data)); err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot  %v\nwant %s", c.data, err, c.want)
		}
	}
}

// No source takes what a float64 does not hold for another number, and none takes units, commas or underscores.
func TestNumbersThatAreNone(t *testing.T) {
	for _, value := range []string{"1e-400", "-0.01E-400", "1e999", "NaN", "Inf", "0x1p3", "1_0", "1,5", "10 cm", ""} {
		for _, name := range []string{"solver.tolerance", "grid.nx", "problem.source"} {
			_, err := mergeConfig(Options{Set: []string{name + "=" + value}}, nil)
			if expression := name == "problem.source" && (value == "" || strings.ContainsAny(value, ", ")); expression {
				continue
			}
			if err == nil || !strings.Contains(err.Error(), " (--set): must be a") {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
	}
	for name, data := range map[string]string{"run.toml": "solver.tolerance = 1e-400",
		"grid.toml": "grid = {width = 1e999}",
		"run.json":  `{"solver": {"tolerance": 1e-400}}`, "grid.json": `{"grid": {"width": 1e999}}`} {
		if _, err := mergeConfig(Options{File: name}, []byte(data)); err == nil {
			t.Errorf("%s %s: no error", name, data)
		}
	}
}

// documentFaults are run files whose text is at fault, and the errors: our words, or only their begin where the rest is
// a decoder's.
var documentFaults = []struct{ name, data, want string }{
	{"run.yaml", "grid:\n  nx: 5\n bad: [\n", "yaml: line 2: "},
	{"run.yaml", "grid:\n  nx: 9\n  nx: 10\n", `line 3: the key "nx" is given twice`},
	{"run.yaml", "5", "must be sections with keys"},
	{"run.yaml", "grid: {nx: 5}\n---\ngrid: {nx: 6}\n", "a second document begins; one is allowed"},
	{"run.yaml", "problem:\n  fixed: ! x < 0.5\n", "line 2: text that begins with ! has quotes"},
	{"run.yaml", "problem: {name: é, fixed: !(x < 0.5)}\n", "line 1: text that begins with ! has quotes"},
	{"run.yaml", "\ufeffproblem:\n  fixed: &part ! x < 0.5\n", "line 2: text that begins with ! has quotes"},
	{"run.toml", "[grid]\nnx = \n", "line 2, column 6: "},
	{"run.toml", "[grid]\nwidth = 1e999\n", "line 2, column 9: toml: unable to parse float: "},
	{"run.toml", "a = [{b = 1.5e-999}]\n", "1.5e-999: must be a number that a float64 holds"},
	{"run.json", "{\n \"grid\": {\n  \"nx\": 5,,\n }}",
		"line 3, column 11: invalid character ',' looking for beginning of object key string"},
	{"run.json", `{"grid": {"width": 1e999}}`, "line 1, column 25: 1e999: must be a number that a float64 holds"},
	{"run.json", "{\"grid\": {", "line 1, column 10: unexpected end of JSON input"},
	{"run.json", "{\"run\": {},\n \"a\": [{\"b\": {}, \"b\": 1}]}", `line 2, column 21: the key "b" is given twice`},
	{"run.json", "{}\n{}", "line 2, column 1: invalid character '{' after top-level value"},
	{"run.json", "[]", "must be an object with keys"},
	{"run.yaml", "run:\n  name: caf\xe9\n", "line 2, column 12: byte 0xe9; must be text in UTF-8"},
}

func TestFaultsInDocuments(t *testing.T) {
	for _, c := range documentFaults {
		_, err := mergeConfig(Options{File: c.name}, []byte(c.data))
		want := "run file " + c.name + ": " + c.want
		begins := strings.HasSuffix(want, ": ")
		if err == nil || err.Error() != want && !(begins && strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s %q:\ngot  %v\nwant %s", c.name, c.data, err, want)
		}
	}
}
