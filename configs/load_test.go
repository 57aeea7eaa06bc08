package configs

import (
	"encoding/json"
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
		Run:     Run{Ranks: 4, Liveness: 10 * time.Second},
		Grid:    Grid{NX: 16384, NY: 16384, DType: "float32"},
		Problem: Problem{Preset: "gtc2019"},
		Solver:  Solver{Tolerance: 1e-8, MaxIterations: 1000},
		Halo:    Halo{Transport: "auto", Timeout: 30 * time.Second},
		Device:  Device{Backend: "auto", Kernel: "auto", Select: "round-robin", Pin: true, MPS: "auto"},
		Output: Output{
			Dir: "out", Field: "field.npy", Picture: "field.png", History: "history.csv", Report: "report.json",
			PictureScale: "auto",
		},
		Log: Log{Level: "info", Format: "console"},

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
		want.Run = Run{c.run, 2, 10 * time.Second}
		want.Grid.NX, want.Grid.NY = c.nx, c.ny
		want.Solver.MaxIterations, want.Halo.Depth = c.max, c.dep
		if got != want {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}

func TestIdentityIsNoConfiguration(t *testing.T) {
	got, err := Load(Options{Environ: []string{
		"JACOBI_RANK=1", "JACOBI_SIZE=2", "JACOBI_LOCAL_RANK=1", "JACOBI_LOCAL_SIZE=2", "JACOBI_RUN_ID=abc",
		"JACOBI_GRID=4", "JACOBI_OTHER_THING=1", "jacobi_grid_nx=5",
	}})
	if err != nil || got != Default() {
		t.Errorf("got %+v, %v", got, err)
	}
}

// All formats and all ways to write a value give the same configuration and the same hash.
func TestSpellings(t *testing.T) {
	want := Default()
	want.Grid = Grid{10000, 64, "float64"}
	want.Problem = Problem{"dirichlet", "0.5", "0.001", "sin(pi*y)", "1", "-2e+07"}
	want.Solver.Tolerance = 1e-6
	want.Halo = Halo{"nats", 8, 90 * time.Second}
	for _, c := range []struct{ name, data string }{
		{"numbers.yaml", "grid: {nx: 1e4, ny: 64, dtype: float64}\nproblem: {preset: dirichlet, left: 0.5, right: " +
			"1e-3, top: sin(pi*y), bottom: 1, initial: -2e7}\n" +
			"solver: {tolerance: 1e-6}\nhalo: {transport: nats, depth: 8, timeout: 1m30s}"},
		{"text.yml", "GRID: {NX: '10000', Ny: '64', dtype: 'float64'}\nproblem: {preset: dirichlet, left: '.50', " +
			"right: '1e-3', top: 'sin(pi*y)', bottom: '1.0', initial: '-20000000'}\n" +
			"solver: {tolerance: '0.000001'}\nhalo: {transport: nats, depth: '8', timeout: 90s}"},
		{"run.toml", "[grid]\nnx = 10_000\nny = 64\ndtype = 'float64'\n[problem]\npreset = 'dirichlet'\nleft = " +
			"0.5\nright = 1e-3\ntop = 'sin(pi*y)'\nbottom = 1\ninitial = -2e7\n" +
			"[solver]\ntolerance = 1e-6\n[halo]\ntransport = 'nats'\ndepth = 8\ntimeout = '90s'"},
		{"run.JSON", `{"grid": {"nx": 10000, "ny": 64, "dtype": "float64"},
			"problem": {"preset": "dirichlet", "left": 0.5, "right": 1e-3,
				"top": "sin(pi*y)", "bottom": "1", "initial": -2e7},
			"solver": {"tolerance": 1e-6}, "halo": {"transport": "nats", "depth": 8, "timeout": "1.5m"}}`},
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
}

const sectionsHint = "the sections are run, grid, problem, solver, halo, device, nats, output, checkpoint and " +
	"log; launcher --dry-run prints all keys"

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct {
		name, data string
		o          Options
		want       string
	}{
		{"run.yaml", "grid: {nxx: 5}", Options{}, `unknown key grid.nxx (file run.yaml): did you mean grid.nx?`},
		{"run.yaml", "solver: {nx: 5}", Options{}, `unknown key solver.nx (file run.yaml): did you mean grid.nx?`},
		{"run.yaml", "nx: 5", Options{}, `unknown key nx (file run.yaml): did you mean grid.nx?`},
		{"run.yaml", "gird: {nx: 5}", Options{}, `unknown key gird (file run.yaml): did you mean grid?`},
		{"run.yaml", "other: {}", Options{}, `unknown key other (file run.yaml): ` + sectionsHint},
		{"run.yaml", "grid: {width: 5}", Options{}, `unknown key grid.width (file run.yaml): the keys of grid are ` +
			`grid.nx, grid.ny and grid.dtype`},
		{"run.yaml", "grid: {nx: {value: 5}}", Options{}, `grid.nx map[value:5] (file run.yaml): an integer is wanted`},
		{"run.yaml", "grid: 5", Options{}, `grid 5 (file run.yaml): a section with keys is wanted`},
		{"run.yaml", "grid: [1, 2]", Options{}, `grid [1 2] (file run.yaml): a section with keys is wanted`},
		{"run.yaml", "grid: {nx: 5, NX: 6}", Options{}, `grid.nx (file run.yaml): given twice, also as grid.NX`},
		{"run.yaml", "5", Options{}, `run file run.yaml: line 1: sections with keys are wanted`},
		{"run.yaml", "grid: {nx: 5}\n---\ngrid: {nx: 6}\n", Options{},
			`run file run.yaml: a second document begins; one is allowed`},
		{"run.yaml", "grid: {nx: ten}", Options{}, `grid.nx "ten" (file run.yaml): an integer is wanted`},
		{"run.yaml", "grid: {nx: 5.5}", Options{}, `grid.nx 5.5 (file run.yaml): an integer is wanted`},
		{"run.yaml", "grid: {nx: 1e300}", Options{}, `grid.nx 1e+300 (file run.yaml): 3 to 2147483647 are allowed`},
		{"run.yaml", "grid: {nx: .inf}", Options{}, `grid.nx +Inf (file run.yaml): an integer is wanted`},
		{"run.yaml", "", Options{Set: []string{"grid.nx=99999999999999999999"}},
			`grid.nx "99999999999999999999" (--set): 3 to 2147483647 are allowed`},
		{"run.yaml", "nats: {port: -99999999999999999999}", Options{},
			`nats.port -1e+20 (file run.yaml): 0 to 65535 are allowed`},
		{"run.yaml", "solver: {max_iterations: 1e18}", Options{},
			`solver.max_iterations 1e+18 (file run.yaml): an integer beyond 9007199254740992 has to be written in ` +
				`digits`},
		{"run.yaml", "grid: {nx: true}", Options{}, `grid.nx true (file run.yaml): an integer is wanted`},
		{"run.yaml", "grid: {nx: }", Options{}, `grid.nx null (file run.yaml): nothing stands behind the key: leave ` +
			`the key out or give a value`},
		{"run.yaml", "output: {picture: }", Options{},
			`output.picture null (file run.yaml): nothing stands behind the key: leave the key out or give a value ` +
				`("" for none)`},
		{"run.yaml", "run: {name: 5}", Options{}, `run.name 5 (file run.yaml): text is wanted; put it in quotes`},
		{"run.yaml", "problem: {left: true}", Options{},
			`problem.left true (file run.yaml): a number or text is wanted`},
		{"run.yaml", "problem: {left: .nan}", Options{},
			`problem.left NaN (file run.yaml): a number or text is wanted`},
		{"run.yaml", "solver: {tolerance: small}", Options{},
			`solver.tolerance "small" (file run.yaml): a number is wanted`},
		{"run.yaml", "halo: {timeout: 30}", Options{},
			`halo.timeout 30 (file run.yaml): a duration with its unit is wanted, such as 30s or 2m`},
		{"run.yaml", "checkpoint: {every: 0}", Options{},
			`checkpoint.every 0 (file run.yaml): a number of sweeps, such as "100 sweeps", or a duration, such as ` +
				`10m, is wanted`},
		{"run.yaml", "checkpoint: {every: -5m}", Options{},
			`checkpoint.every "-5m" (file run.yaml): a number of sweeps, such as "100 sweeps", or a duration, such ` +
				`as 10m, is wanted`},
		{"run.yaml", "checkpoint: {every: 7 minutes}", Options{},
			`checkpoint.every "7 minutes" (file run.yaml): a number of sweeps, such as "100 sweeps", or a duration, ` +
				`such as 10m, is wanted`},
		{"run.yaml", "halo: {timeout: soon}", Options{},
			`halo.timeout "soon" (file run.yaml): a duration with its unit is wanted, such as 30s or 2m`},
		{"run.yaml", "halo: {depth: 0}", Options{},
			`halo.depth 0 (file run.yaml): auto or an integer of at least 1 is wanted`},
		{"run.yaml", "halo: {depth: deep}", Options{},
			`halo.depth "deep" (file run.yaml): auto or an integer of at least 1 is wanted`},
		{"run.yaml", "nats: {url: [nats://user:secret@host]}", Options{},
			`nats.url "hidden" (file run.yaml): text is wanted; put it in quotes`},
		{"run.yaml", "", Options{Environ: []string{"JACOBI_GRID_NXX=5"}},
			`unknown key grid.nxx (environment JACOBI_GRID_NXX): did you mean JACOBI_GRID_NX?`},
		{"run.yaml", "", Options{Environ: []string{"JACOBI_SOLVER_MAXITERATIONS=5"}},
			`unknown key solver.maxiterations (environment JACOBI_SOLVER_MAXITERATIONS): did you mean ` +
				`JACOBI_SOLVER_MAX_ITERATIONS?`},
		{"run.yaml", "", Options{Environ: []string{"JACOBI_GRID_NX="}},
			`grid.nx "" (environment JACOBI_GRID_NX): an integer is wanted`},
		{"run.yaml", "", Options{Set: []string{"grid.nx"}}, `--set grid.nx: key=value is wanted`},
		{"run.yaml", "", Options{Set: []string{"grid=5"}}, `unknown key grid (--set): it is a section; its keys ` +
			`are grid.nx, grid.ny and grid.dtype`},
		{"run.yaml", "", Options{Set: []string{"zzz.qqq=5"}}, `unknown key zzz.qqq (--set): ` + sectionsHint},
		{"run.yaml", "", Options{Environ: []string{"JACOBI_LOG_COLOURS=1"}},
			`unknown key log.colours (environment JACOBI_LOG_COLOURS): the keys of log are JACOBI_LOG_LEVEL and ` +
				`JACOBI_LOG_FORMAT`},
		{"run.yaml", "", Options{Set: []string{"run.rank=5"}}, `unknown key run.rank (--set): did you mean run.ranks?`},
		{"run.yaml", "", Options{Set: []string{"run.name=\xff"}},
			`run.name "\xff" (--set): text in UTF-8 without zero bytes is wanted`},
		{"run.yaml", "grid: {nx: a, ny: b}", Options{Set: []string{"x=1"}, Environ: []string{"JACOBI_LOG_LEVL=1"}},
			"grid.nx \"a\" (file run.yaml): an integer is wanted\n" +
				"grid.ny \"b\" (file run.yaml): an integer is wanted\n" +
				"unknown key log.levl (environment JACOBI_LOG_LEVL): did you mean JACOBI_LOG_LEVEL?\nunknown key x " +
				"(--set): did you mean grid.nx?"},
		{"run.ini", "", Options{}, `run file run.ini: extension ".ini": allowed are .yaml, .yml, .toml and .json`},
		{"run", "", Options{}, `run file run: extension "": allowed are .yaml, .yml, .toml and .json`},
		{"run.json", "[]", Options{}, `run file run.json: line 1, column 1: sections with keys are wanted, not array`},
		{"run.toml", "grid = 5", Options{}, `grid 5 (file run.toml): a section with keys is wanted`},
		{"run.toml", "[run]\nname = 2020-01-01", Options{},
			`run.name 2020-01-01 (file run.toml): text is wanted; put it in quotes`},
	} {
		c.o.File = c.name
		if _, err := merge(c.o, []byte(c.data)); err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot  %v\nwant %s", c.data, err, c.want)
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
		pipe: "run file: open " + pipe + ": a named pipe; a regular file is wanted",
		"-":  "run file: standard input cannot be shared by ranks: a file is wanted",

		filepath.Join(dir, "absent.yaml"): "run file: open " + filepath.Join(dir, "absent.yaml") +
			": no such file or directory",
		big: "run file: read " + big + ": more than 1048576 bytes",
	} {
		if _, err := Load(Options{File: path}); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	want := "run file: open " + pipe + ": a named pipe; a regular file is wanted; - reads standard input"
	if _, err := Load(Options{File: pipe, Stdin: strings.NewReader("")}); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestStandardInput(t *testing.T) {
	for _, text := range []string{"grid: {nx: 77}\n", `{"grid": {"nx": 77}}`} {
		if c, err := Load(Options{File: "-", Stdin: strings.NewReader(text)}); err != nil || c.Grid.NX != 77 {
			t.Errorf("%s: grid.nx %d, %v", text, c.Grid.NX, err)
		}
	}
	for text, want := range map[string]string{
		"grid: {nx: x}": `grid.nx "x" (file -): an integer is wanted`,
		"grid: [":       "run file -: yaml: line 1: did not find expected node content",

		strings.Repeat("#", maxFile+1): "run file: standard input has more than 1048576 bytes",
	} {
		if _, err := Load(Options{File: "-", Stdin: strings.NewReader(text)}); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestSyntaxErrorsNameTheLine(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"run.yaml", "grid:\n  nx: 5\n bad: [\n", "yaml: line 2: did not find expected key"},
		{"run.toml", "[grid]\nnx = \n", "line 2, column 6: toml: incomplete number"},
		{"run.json", "{", "line 1, column 1: unexpected end of JSON input"},
		{"run.json", "{\n \"grid\": {\n  \"nx\": 5,,\n }}", "line 3, column 11: invalid character ',' looking for " +
			"beginning of object key string"},
		{"run.json", "{\"grid\": {}}\n{}", "line 2, column 1: invalid character '{' after top-level value"},
		{"run.yaml", "run:\n  name: caf\xe9\n", "line 2, column 12: byte 0xe9; text in UTF-8, or in UTF-16 with a " +
			"byte order mark, is wanted"},
		{"run.json", "\xff\xfe{\x00}", "UTF-16 text with half a character at its end"},
		{"run.toml", "[\x00g\x00", "line 1, column 2: byte 0x00; text in UTF-8, or in UTF-16 with a byte order " +
			"mark, is wanted"},
	} {
		if _, err := merge(Options{File: c.name}, []byte(c.data)); err == nil ||
			err.Error() != "run file "+c.name+": "+c.want {
			t.Errorf("%s %q:\ngot  %v\nwant run file %s: %s", c.name, c.data, err, c.name, c.want)
		}
	}
}

// Editors on Windows write UTF-16, or a byte order mark before UTF-8.
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
		"environment JACOBI_GRID: no key has this variable, and it is ignored; the keys of this section are " +
			"JACOBI_GRID_NX, JACOBI_GRID_NY and JACOBI_GRID_DTYPE",
		"environment JACOBI_RNK: no key has this variable, and it is ignored; did you mean JACOBI_RANK?",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// odd is a configuration in which every key differs from its default.
var odd = Config{
	Run:  Run{Name: `a "b": #c`, Ranks: 3, Liveness: time.Minute},
	Grid: Grid{NX: 100, NY: 200, DType: "float64"},
	Problem: Problem{Preset: "dirichlet", Left: "0.5", Right: "sin(pi*y)", Top: "periodic", Bottom: "periodic",
		Initial: "start.npy"},
	Solver: Solver{Tolerance: 1.25e-7, MaxIterations: 12345678},
	Halo:   Halo{Transport: "p2p", Depth: 5, Timeout: 90*time.Minute + 1500*time.Millisecond},
	Device: Device{Backend: "cpu", Threads: 2, Kernel: "portable", Select: "coolest", MPS: "off"},
	NATS:   NATS{URL: "nats://a:4222,tls://b", CA: "ca.pem"},
	Output: Output{
		Dir: "elsewhere", Field: "f.npy", Picture: "", History: "h.csv", Report: "r.json", PictureScale: "sqrt",
	},
	Log: Log{Level: "debug", Format: "json"},

	Checkpoint: Checkpoint{Every: Interval{Time: 90 * time.Minute}, NATS: "bucket_1", Keep: 5, Resume: "nats:bucket_0"},
}

func TestRoundTrip(t *testing.T) {
	for _, c := range []Config{Default(), odd} {
		y, err := YAML(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := mustMerge(t, "run.yaml", string(y), Options{}); got != c {
			t.Errorf("YAML:\n%s\ngot %+v", y, got)
		}
		j, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := mustMerge(t, "run.json", string(j), Options{}); got != c {
			t.Errorf("JSON:\n%s\ngot %+v", j, got)
		}
		c.NATS = NATS{"nats://user:secret@host", "user", "password", "file.creds", "seed", "ca.pem", "cert.pem",
			"key.pem", Inline("a\nsecret\n"), 4222, "gate", "/tmp"}
		if got, err := Load(Options{Environ: Environ(c)}); err != nil || got != c {
			t.Errorf("environment:\n%s\ngot %+v, %v", Environ(c), got, err)
		}
	}
}

func TestYAMLText(t *testing.T) {
	want := `run:
  name: ""
  ranks: 4
  liveness: 10s
grid:
  nx: 16384
  ny: 16384
  dtype: float32
problem:
  preset: gtc2019
  left: ""
  right: ""
  top: ""
  bottom: ""
  initial: ""
solver:
  tolerance: 1e-08
  max_iterations: 1000
halo:
  transport: auto
  depth: auto
  timeout: 30s
device:
  backend: auto
  threads: 0
  kernel: auto
  select: round-robin
  pin: true
  mps: auto
nats:
  url: nats://hidden@host:4222
  user: ""
  password_file: ""
  creds: hidden
  nkey: ""
  ca: hidden
  cert: /etc/cert.pem
  key: hidden
  secret_file: hidden
  port: 0
  advertise: ""
  rendezvous: ""
output:
  dir: out
  field: field.npy
  picture: field.png
  history: history.csv
  report: report.json
  picture_scale: auto
checkpoint:
  every: ""
  dir: ""
  nats: ""
  keep: 2
  resume: ""
log:
  level: info
  format: console
`
	c := Default()
	c.NATS = NATS{URL: "nats://user:secret@host:4222", Creds: "/home/user/secret.creds", CA: Inline("PEM"),
		Cert: "/etc/cert.pem", Key: "/etc/key.pem",
		SecretFile: Inline("secret")}
	if got, err := YAML(c); err != nil || string(got) != want {
		t.Errorf("got\n%s%v", got, err)
	}
}

func TestSecretsStayHidden(t *testing.T) {
	for url, want := range map[string]string{
		"":                                       "",
		"nats://host:4222":                       "nats://host:4222",
		"nats://user:hunter2@host:4222":          "nats://hidden@host:4222",
		"nats://hunter2@host":                    "nats://hidden@host",
		"nats://a, nats://u:hunter2@b,tls://c:1": "nats://a,nats://hidden@b,tls://c:1",
		"nats://u:hun,ter2@b":                    "hidden",
		"nats://u:hunter2%zz@b":                  "hidden",
		"u:hunter2@b":                            "hidden",
	} {
		c := Default()
		c.NATS = NATS{URL: url, PasswordFile: "hunter2", Creds: "hunter2", NKey: "hunter2", CA: Inline("hunter2"),
			Key: "hunter2", SecretFile: Inline("hunter2")}
		if got := Redacted(c).NATS; got.URL != want || got.Creds != "hidden" {
			t.Errorf("%s: %#v", url, got)
		}
		j, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		y, err := YAML(c)
		if err != nil {
			t.Fatal(err)
		}
		invalid := c
		invalid.NATS.URL = strings.Replace(url, "nats:", "http:", 1)
		for _, text := range []string{string(j), string(y), fmt.Sprintf("%v %+v %#v", c, c, c),
			fmt.Sprint(Validate(c), Validate(invalid))} {
			if strings.Contains(text, "hunter2") || strings.Contains(text, "ter2@") {
				t.Errorf("%s: %s", url, text)
			}
		}
	}
}

// The hash changes with each key that ranks must agree on and with no other.
func TestHash(t *testing.T) {
	free := map[string]bool{
		"run.name": true, "device.backend": true, "device.threads": true, "device.kernel": true, "device.select": true,
		"device.pin": true, "device.mps": true,
		"nats.url": true, "nats.user": true, "nats.password_file": true, "nats.creds": true, "nats.nkey": true,
		"nats.ca": true, "nats.cert": true, "nats.key": true, "nats.secret_file": true, "nats.port": true,
		"nats.advertise": true, "nats.rendezvous": true, "output.dir": true, "checkpoint.dir": true,
		"checkpoint.resume": true, "log.level": true, "log.format": true,
	}
	base := Default()
	base.NATS = NATS{"", "x", "x", "x", "x", "x", "x", "x", "x", 1, "x", "x"}
	base.Checkpoint.Dir = "x"
	other := odd
	seen := map[string]string{Hash(base): "the default"}
	for i, line := range Environ(other) {
		key := keys()[i].name
		c, err := Load(Options{Environ: append(Environ(base), line)})
		if err != nil {
			t.Fatal(err)
		}
		if c == base {
			t.Errorf("%s: the test changes nothing", key)
		}
		first, same := seen[Hash(c)]
		if same != free[key] {
			t.Errorf("%s: hash of %s, free %v", key, first, free[key])
		}
		if !same {
			seen[Hash(c)] = key
		}
	}
	if got, want := Hash(Default()), "ef7562c23f67ce9329efe9b2a30d4cfeaafa44f786ce895eff89584b96fffcd5"; got != want {
		t.Errorf("hash of the default %s, want %s", got, want)
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		30 * time.Second: "30s", 10 * time.Minute: "10m", 2 * time.Hour: "2h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s",
		1500 * time.Millisecond: "1.5s", 0: "0s", 10 * time.Hour: "10h", 70 * time.Second: "1m10s",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
		if back, err := time.ParseDuration(want); err != nil || back != d {
			t.Errorf("%s: %v, %v", want, back, err)
		}
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
	if seen != 4 {
		t.Errorf("%d run files, want 4", seen)
	}
	if c, err := Load(Options{File: "gtc2019.yaml"}); c != Default() || err != nil {
		t.Errorf("gtc2019.yaml is not the default: %+v, %v", c, err)
	}
}

// FuzzLoad: no file makes the loader panic, and what it accepts can be checked and, if valid, printed and loaded again.
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
		if err != nil || again != c || Hash(again) != Hash(c) {
			t.Errorf("%v\n%s\ngot  %#v\nwant %#v", err, y, again, c)
		}
	})
}

// What the launcher hands to ranks on other machines holds the contents of its files.
func TestInlined(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"password": "hunter2\n", "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := NATS{URL: "nats://h", User: "u", PasswordFile: filepath.Join(dir, "password"), CA: "inline:PEM"}
	got, err := n.Inlined()
	if want := (NATS{URL: "nats://h", User: "u", PasswordFile: "inline:hunter2\n", CA: "inline:PEM"}); err != nil ||
		got != want {
		t.Errorf("got %#v, %v", got, err)
	}
	if n.PasswordFile != filepath.Join(dir, "password") {
		t.Errorf("changed: %#v", n)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		"nowhere": "open ", "empty": " is empty", "pipe": ": a named pipe; a regular file is wanted",
	} {
		n.CA = filepath.Join(dir, value)
		if _, err := n.Inlined(); err == nil || !strings.HasPrefix(err.Error(), "nats.ca: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", value, err)
		}
	}
}
