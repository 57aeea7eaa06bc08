package configs

import (
	"strings"
	"testing"
)

const sectionsHint = "the sections are run, grid, problem, solver, halo, device, nats, output, trace, checkpoint, " +
	"metrics, view and log; launcher --dry-run prints all keys"

// refusals are run files, with other sources, that Load refuses, and its errors.
var refusals = []struct {
	name, data string
	o          Options
	want       string
}{
	{"run.yaml", "solver: {nx: 5}", Options{}, `unknown key solver.nx (file run.yaml): did you mean grid.nx?`},
	{"run.yaml", "", Options{Set: []string{"run=5"}}, "unknown key run (--set): the keys of run are " +
		"run.name, run.ranks, run.liveness and run.balance"},
	{"run.yaml", "gird: {nx: 5}", Options{}, `unknown key gird (file run.yaml): did you mean grid?`},
	{"run.yaml", "other: {}", Options{}, `unknown key other (file run.yaml): ` + sectionsHint},
	{"run.yaml", "grid: {columns: 5}", Options{}, `unknown key grid.columns (file run.yaml): the keys of grid are ` +
		`grid.nx, grid.ny, grid.dtype, grid.width and grid.height`},
	{"", "", Options{Environ: []string{"JACOBI_SOLVER_MAXITERATIONS=5", "JACOBI_LOG_SHADE=1"}},
		`unknown key solver.maxiterations (environment JACOBI_SOLVER_MAXITERATIONS): did you mean ` +
			"JACOBI_SOLVER_MAX_ITERATIONS?\nunknown key log.shade (environment JACOBI_LOG_SHADE): the keys of log " +
			"are JACOBI_LOG_LEVEL and JACOBI_LOG_FORMAT"},
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
		`grid.nx null (file run.yaml): must have a value; a key that is left out has its default`},
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
		if _, err := merge(c.o, []byte(c.data)); err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot  %v\nwant %s", c.data, err, c.want)
		}
	}
}

// No source takes what a float64 does not hold for another number, and none takes units, commas or underscores.
func TestNumbersThatAreNone(t *testing.T) {
	for _, value := range []string{"1e-400", "-0.01E-400", "1e999", "NaN", "Inf", "0x1p3", "1_0", "1,5", "10 cm", ""} {
		for _, name := range []string{"solver.tolerance", "grid.nx", "problem.source"} {
			_, err := merge(Options{Set: []string{name + "=" + value}}, nil)
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
		if _, err := merge(Options{File: name}, []byte(data)); err == nil {
			t.Errorf("%s %s: no error", name, data)
		}
	}
}

// documentFaults are run files whose text is at fault, and the errors: our words, or only their begin where the rest is
// a decoder's.
var documentFaults = []struct{ name, data, want string }{
	{"run.yaml", "grid:\n  nx: 5\n bad: [\n", "line 2: "},
	{"run.yaml", "grid:\n  nx: 9\n  nx: 10\n", `line 3: the key "nx" is given twice`},
	{"run.yaml", "5", "line 1: must be sections with keys"},
	{"run.yaml", "grid: {nx: 5}\n---\ngrid: {nx: 6}\n", "a second document begins; one is allowed"},
	{"run.yaml", "problem:\n  fixed: ! x < 0.5\n", "line 2: text that begins with ! has quotes"},
	{"run.yaml", "problem: {name: é, fixed: !(x < 0.5)}\n", "line 1: text that begins with ! has quotes"},
	{"run.yaml", "\ufeffproblem:\n  fixed: &part ! x < 0.5\n", "line 2: text that begins with ! has quotes"},
	{"run.toml", "[grid]\nnx = \n", "line 2, column 6: "},
	{"run.toml", "[grid]\nwidth = 1e999\n", "line 2, column 9: unable to parse float"},
	{"run.toml", "a = [{b = 1.5e-999}]\n", "1.5e-999: must be a number that a float64 holds"},
	{"run.json", "{\n \"grid\": {\n  \"nx\": 5,,\n }}", "line 3, column 11: "},
	{"run.json", `{"grid": {"width": 1e999}}`, "line 1, column 25: 1e999: must be a number that a float64 holds"},
	{"run.json", "{\"grid\": {", "line 1, column 11: the end of the object is missing"},
	{"run.json", "{\"run\": {},\n \"a\": [{\"b\": {}, \"b\": 1}]}", `line 2, column 21: the key "b" is given twice`},
	{"run.json", "{}\n{}", "line 2, column 2: more after the end of the object"},
	{"run.json", "[]", "line 1, column 3: must be an object with keys"},
	{"run.yaml", "run:\n  name: caf\xe9\n", "line 2, column 12: byte 0xe9; must be text in UTF-8, or in UTF-16 with " +
		"a byte order mark"},
}

func TestFaultsInDocuments(t *testing.T) {
	for _, c := range documentFaults {
		_, err := merge(Options{File: c.name}, []byte(c.data))
		want := "run file " + c.name + ": " + c.want
		begins := strings.HasSuffix(want, ": ")
		if err == nil || err.Error() != want && !(begins && strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s %q:\ngot  %v\nwant %s", c.name, c.data, err, want)
		}
	}
}
