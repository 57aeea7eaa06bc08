package configs

import (
	"testing"
)

const sectionsHint = "the sections are run, grid, problem, solver, halo, device, nats, output, trace, checkpoint, " +
	"metrics, view and log; launcher --dry-run prints all keys"

// refusedFiles are run files, with other sources, that Load refuses, and its errors.
var refusedFiles = []struct {
	name, data string
	o          Options
	want       string
}{
	{"run.yaml", "grid: {nxx: 5}", Options{}, `unknown key grid.nxx (file run.yaml): did you mean grid.nx?`},
	{"run.yaml", "solver: {nx: 5}", Options{}, `unknown key solver.nx (file run.yaml): did you mean grid.nx?`},
	{"run.yaml", "nx: 5", Options{}, `unknown key nx (file run.yaml): did you mean grid.nx?`},
	{"run.yaml", "gird: {nx: 5}", Options{}, `unknown key gird (file run.yaml): did you mean grid?`},
	{"run.yaml", "other: {}", Options{}, `unknown key other (file run.yaml): ` + sectionsHint},
	{"run.yaml", "grid: {columns: 5}", Options{}, `unknown key grid.columns (file run.yaml): the keys of grid are ` +
		`grid.nx, grid.ny, grid.dtype, grid.width and grid.height`},
	{"run.yaml", "grid: {height: 0}", Options{},
		`grid.height 0 (file run.yaml): must be auto or a number above 0`},
	{"run.yaml", "grid: {width: auto}", Options{}, `grid.width "auto" (file run.yaml): must be a number`},
	{"run.yaml", "grid: {nx: {value: 5}}", Options{}, `grid.nx {...} (file run.yaml): must be an integer`},
	{"run.yaml", "grid: 5", Options{}, `grid 5 (file run.yaml): must be a section with keys`},
	{"run.yaml", "grid: [1, 2]", Options{}, `grid [1 2] (file run.yaml): must be a section with keys`},
	{"run.yaml", "grid: {nx: 5, NX: 6}", Options{}, `grid.nx (file run.yaml): given twice, also as grid.NX`},
	{"run.yaml", "5", Options{}, `run file run.yaml: line 1: must be sections with keys`},
	{"run.yaml", "grid: {nx: 5}\n---\ngrid: {nx: 6}\n", Options{},
		`run file run.yaml: a second document begins; one is allowed`},
	{"run.yaml", "grid: {nx: ten}", Options{}, `grid.nx "ten" (file run.yaml): must be an integer`},
	{"run.yaml", "grid: {nx: 5.5}", Options{}, `grid.nx 5.5 (file run.yaml): must be an integer`},
	{"run.yaml", "grid: {nx: 1e300}", Options{}, `grid.nx 1e+300 (file run.yaml): 3 to 2147483647 are allowed`},
	{"run.yaml", "grid: {nx: .inf}", Options{}, `grid.nx +Inf (file run.yaml): must be an integer`},
	{"run.yaml", "", Options{Set: []string{"grid.nx=99999999999999999999"}},
		`grid.nx "99999999999999999999" (--set): 3 to 2147483647 are allowed`},
	{"run.yaml", "nats: {port: -99999999999999999999}", Options{},
		`nats.port -1e+20 (file run.yaml): 0 to 65535 are allowed`},
	{"run.yaml", "solver: {max_iterations: 1e18}", Options{},
		`solver.max_iterations 1e+18 (file run.yaml): an integer beyond 9007199254740992 has to be written in ` +
			`digits`},
	{"run.yaml", "grid: {nx: true}", Options{}, `grid.nx true (file run.yaml): must be an integer`},
	{"run.yaml", "grid: {nx: }", Options{}, `grid.nx null (file run.yaml): the key has no value: leave it out ` +
		`or give one`},
	{"run.yaml", "output: {picture: }", Options{},
		`output.picture null (file run.yaml): the key has no value: leave it out or give one ` +
			`("" for none)`},
	{"run.yaml", "run: {name: 5}", Options{}, `run.name 5 (file run.yaml): must be text; put it in quotes`},
	{"run.yaml", "problem: {left: true}", Options{},
		`problem.left true (file run.yaml): must be a number or text`},
	{"run.yaml", "problem: {left: .nan}", Options{},
		`problem.left NaN (file run.yaml): must be a number or text`},
	{"run.yaml", "solver: {tolerance: small}", Options{},
		`solver.tolerance "small" (file run.yaml): must be a number`},
	{"run.yaml", "", Options{Set: []string{"solver.tolerance=1e-400"}},
		`solver.tolerance "1e-400" (--set): it is too small for a number: 0, or 4.9e-324 and up are allowed`},
	{"run.yaml", "", Options{Set: []string{"problem.source=-0.01E-400"}},
		`problem.source "-0.01E-400" (--set): it is too small for a number: 0, or 4.9e-324 and up are allowed`},
	{"run.yaml", "# 1e-400\nsolver: {method: jacobi, tolerance: 1e-400}", Options{},
		`run file run.yaml: line 2: tolerance 1e-400 is too small for a number: 0, or 4.9e-324 and up are allowed`},
	{"run.toml", "[grid]\nwidth = 1.5e-999\n", Options{},
		`run file run.toml: line 2: width 1.5e-999 is too small for a number: 0, or 4.9e-324 and up are allowed`},
	{"run.json", `{"solver": {"tolerance": 1e-324}}`, Options{},
		`run file run.json: line 1: tolerance 1e-324 is too small for a number: 0, or 4.9e-324 and up are allowed`},
	{"run.yaml", "halo: {timeout: 30}", Options{},
		`halo.timeout 30 (file run.yaml): must be a duration with its unit, such as 30s or 2m`},
	{"run.yaml", "checkpoint: {every: 0}", Options{},
		`checkpoint.every 0 (file run.yaml): must be 100, "100 sweeps", "5 cycles", or a duration, such as 10m`},
	{"run.yaml", "checkpoint: {every: -5m}", Options{},
		`checkpoint.every "-5m" (file run.yaml): must be 100, "100 sweeps", "5 cycles", or a duration, such as 10m`},
	{"run.yaml", "checkpoint: {every: 7 minutes}", Options{},
		`checkpoint.every "7 minutes" (file run.yaml): must be 100, "100 sweeps", "5 cycles", or a duration, ` +
			`such as 10m`},
	{"run.yaml", "halo: {timeout: soon}", Options{},
		`halo.timeout "soon" (file run.yaml): must be a duration with its unit, such as 30s or 2m`},
	{"run.yaml", "halo: {depth: 0}", Options{},
		`halo.depth 0 (file run.yaml): must be auto or an integer of at least 1`},
	{"run.yaml", "halo: {depth: deep}", Options{},
		`halo.depth "deep" (file run.yaml): must be auto or an integer of at least 1`},
	{"run.yaml", "nats: {url: [nats://user:secret@host]}", Options{},
		`nats.url "hidden" (file run.yaml): must be text; put it in quotes`},
	{"run.yaml", "", Options{Environ: []string{"JACOBI_GRID_NXX=5"}},
		`unknown key grid.nxx (environment JACOBI_GRID_NXX): did you mean JACOBI_GRID_NX?`},
	{"run.yaml", "", Options{Environ: []string{"JACOBI_SOLVER_MAXITERATIONS=5"}},
		`unknown key solver.maxiterations (environment JACOBI_SOLVER_MAXITERATIONS): did you mean ` +
			`JACOBI_SOLVER_MAX_ITERATIONS?`},
	{"run.yaml", "", Options{Environ: []string{"JACOBI_GRID_NX="}},
		`grid.nx "" (environment JACOBI_GRID_NX): must be an integer`},
	{"run.yaml", "", Options{Set: []string{"grid.nx"}}, `--set grid.nx: must be key=value`},
	{"run.yaml", "", Options{Set: []string{"grid=5"}}, `unknown key grid (--set): it is a section; its keys ` +
		`are grid.nx, grid.ny, grid.dtype, grid.width and grid.height`},
	{"run.yaml", "", Options{Set: []string{"zzz.qqq=5"}}, `unknown key zzz.qqq (--set): ` + sectionsHint},
	{"run.yaml", "", Options{Environ: []string{"JACOBI_LOG_SHADE=1"}},
		`unknown key log.shade (environment JACOBI_LOG_SHADE): the keys of log are JACOBI_LOG_LEVEL and ` +
			`JACOBI_LOG_FORMAT`},
	{"run.yaml", "", Options{Set: []string{"run.rank=5"}}, `unknown key run.rank (--set): did you mean run.ranks?`},
	{"run.yaml", "", Options{Set: []string{"run.name=\xff"}},
		`run.name "\xff" (--set): must be text in UTF-8 without zero bytes`},
	{"run.yaml", "grid: {nx: a, ny: b}", Options{Set: []string{"x=1"}, Environ: []string{"JACOBI_LOG_LEVL=1"}},
		"grid.nx \"a\" (file run.yaml): must be an integer\n" +
			"grid.ny \"b\" (file run.yaml): must be an integer\n" +
			"unknown key log.levl (environment JACOBI_LOG_LEVL): did you mean JACOBI_LOG_LEVEL?\nunknown key x " +
			"(--set): did you mean grid.nx?"},
	{"run.ini", "", Options{}, `run file run.ini: extension ".ini": allowed are .yaml, .yml, .toml and .json`},
	{"run", "", Options{}, `run file run: extension "": allowed are .yaml, .yml, .toml and .json`},
	{"run.json", "[]", Options{}, `run file run.json: line 1, column 1: must be sections with keys, not array`},
	{"run.toml", "grid = 5", Options{}, `grid 5 (file run.toml): must be a section with keys`},
	{"run.toml", "[run]\nname = 2020-01-01", Options{},
		`run.name 2020-01-01 (file run.toml): must be text; put it in quotes`},
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range refusedFiles {
		c.o.File = c.name
		if _, err := merge(c.o, []byte(c.data)); err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot  %v\nwant %s", c.data, err, c.want)
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
		{"run.json", "{\"grid\": {\"nx\": 5,\n\"ny\": 5, \"nx\": 6}}", "line 2: the key \"nx\" is given twice"},
		{"run.json", "{\"grid\": {\"nx\": 5}, \"run\": {},\n\n\"grid\": {\"nx\": 6}}",
			"line 3: the key \"grid\" is given twice"},
		{"run.json", "{\"run\": {\"name\": \"name\"}, \"problem\": {\"fixed\": [{\"a\": {}, \"a\": 1}]}}",
			"line 1: the key \"a\" is given twice"},
		{"run.json", "{\"grid\": {}}\n{}", "line 2, column 1: invalid character '{' after top-level value"},
		{"run.yaml", "run:\n  name: caf\xe9\n", "line 2, column 12: byte 0xe9; must be text in UTF-8, or in UTF-16 " +
			"with a " +
			"byte order mark"},
		{"run.json", "\xff\xfe{\x00}", "UTF-16 text with half a character at its end"},
		{"run.toml", "[\x00g\x00", "line 1, column 2: byte 0x00; must be text in UTF-8, or in UTF-16 with a byte " +
			"order " +
			"mark"},
	} {
		if _, err := merge(Options{File: c.name}, []byte(c.data)); err == nil ||
			err.Error() != "run file "+c.name+": "+c.want {
			t.Errorf("%s %q:\ngot  %v\nwant run file %s: %s", c.name, c.data, err, c.name, c.want)
		}
	}
}
