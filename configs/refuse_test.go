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
	{"run.yaml", "problem: {conductivity: 5}", Options{},
		`unknown key problem.conductivity (file run.yaml): did you mean problem.coefficient?`},
	{"run.yaml", "permittivity: 4.4", Options{},
		`unknown key permittivity (file run.yaml): did you mean problem.coefficient?`},
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
	{"run.yaml", "grid: {width: 1,5}", Options{}, `grid (file run.yaml): the number 5 stands in the place of a key; ` +
		`decimals have a point, not a comma`},
	{"run.yaml", "problem:\n  colours:\n    #b87333: {value: 1}\n", Options{},
		`problem.colours null (file run.yaml): the key has no value: leave it out or give one; ` +
			`a colour stands in quotes, since # begins a comment`},
	{"run.yaml", "problem:\n  fixed: ! x < 0.5\n", Options{},
		`run file run.yaml: line 2: text that begins with ! has quotes`},
	{"run.yaml", "problem: {name: é, fixed: !x < 0.5}\n", Options{},
		`run file run.yaml: line 1: text that begins with ! has quotes`},
	{"run.yaml", "problem:\n  fixed: !(x < 0.5)\n", Options{},
		`run file run.yaml: line 2: text that begins with ! has quotes`},
	{"run.yaml", "problem:\n  fixed: !(x<0.5)\n", Options{},
		`run file run.yaml: line 2: text that begins with ! has quotes`},
	{"run.yaml", "problem:\n  fixed: &part ! x < 0.5\n", Options{},
		`run file run.yaml: line 2: text that begins with ! has quotes`},
	{"run.yaml", "\ufeffproblem: {fixed: ! x < 0.5}\n", Options{},
		`run file run.yaml: line 1: text that begins with ! has quotes`},
	{"run.yaml", "problem: {left: 010}\n", Options{},
		`run file run.yaml: line 1: 010 begins with 0, which makes it octal in YAML; a number has no such 0, and ` +
			`text has quotes`},
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
		`run file run.json: line 1, column 26: tolerance 1e-324 is too small for a number: 0, or 4.9e-324 ` +
			`and up are allowed`},
	{"run.yaml", "halo: {timeout: 30}", Options{},
		`halo.timeout 30 (file run.yaml): must be a duration with its unit, such as 30s or 2m`},
	{"run.yaml", "checkpoint: {every: -5m}\noutput: {every: 0, probes_every: 1m}", Options{},
		`checkpoint.every "-5m" (file run.yaml): must be 100, "100 sweeps" or "5 cycles", or a duration, such as 10m` +
			"\n" + `output.every 0 (file run.yaml): must be 100, "100 sweeps" or "5 cycles"` + "\n" +
			`output.probes_every "1m" (file run.yaml): must be 100, "100 sweeps" or "5 cycles"`},
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
	{"run.json", "[]", Options{}, `run file run.json: line 1, column 1: must be an object with keys, not an array`},
	{"run.json", "true", Options{},
		`run file run.json: line 1, column 4: must be an object with keys, not true or false`},
	{"run.json", "null", Options{}, `run file run.json: line 1, column 1: must be an object with keys, not null`},
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

// Numbers are refused in the user's words, with what was most likely meant.
func TestNumbersThatAreNone(t *testing.T) {
	for value, want := range map[string]string{
		"grid.nx=1,024":           `grid.nx "1,024" (--set): must be an integer; is 1024 meant?`,
		"grid.nx=1_024":           `grid.nx "1_024" (--set): must be an integer; is 1024 meant?`,
		"grid.nx=1 024":           `grid.nx "1 024" (--set): must be an integer; is 1024 meant?`,
		"grid.nx=1k":              `grid.nx "1k" (--set): must be an integer, without a unit`,
		"grid.nx=9.5":             `grid.nx "9.5" (--set): must be an integer`,
		"grid.nx=":                `grid.nx "" (--set): must be an integer`,
		"grid.nx=9x9":             `grid.nx "9x9" (--set): must be an integer`,
		"grid.nx=1e999":           `grid.nx "1e999" (--set): it is too large for a number`,
		"grid.width=1e999":        `grid.width "1e999" (--set): it is too large for a number`,
		"grid.width=1,5":          `grid.width "1,5" (--set): must be a number, with a point, as in 1.5`,
		"grid.width=10 cm":        `grid.width "10 cm" (--set): must be a number, without a unit`,
		"solver.tolerance=1%":     `solver.tolerance "1%" (--set): must be a number, without a unit`,
		"solver.tolerance=10^-8":  `solver.tolerance "10^-8" (--set): must be a number, as in 1e-8`,
		"solver.tolerance=little": `solver.tolerance "little" (--set): must be a number`,
		"=9":                      `--set =9: must be key=value`,
		"grid.nx":                 `--set grid.nx: must be key=value`,
	} {
		if _, err := merge(Options{Set: []string{value}}, nil); err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", value, err, want)
		}
	}
}

func TestSyntaxErrorsNameTheLine(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"run.yaml", "grid:\n  nx: 5\n bad: [\n", "line 2: a key is missing; all keys of a section are indented alike"},
		{"run.toml", "[grid]\nnx = \n", "line 2, column 6: a value is missing: a number, true, false, or text in " +
			"quotes"},
		{"run.yaml", "grid:\n\tnx: 9\n", "line 2: a value cannot begin like this; text with @, % or ` has " +
			"quotes, and lines are indented with spaces, not tabs"},
		{"run.yaml", "problem: {left: @x}", "line 1: a value cannot begin like this; text with @, % or ` has quotes, " +
			"and lines are indented with spaces, not tabs"},
		{"run.yaml", "grid:\n  nx: \"9\n", "line 2: a quote is not closed"},
		{"run.yaml", "grid\n  nx: 9\n", "line 2: a colon is not expected here; is that of the line above " +
			"missing? Text with a colon has quotes"},
		{"run.yaml", "grid:\n  nx: 9\n  nx: 10\n", `line 3: the key "nx" is given twice, also in line 2`},
		{"run.yaml", "problem: {left: x>1 ? 1 : 0}", "line 1: a comma or } is missing; text with : ? , { or " +
			"[ has quotes"},
		{"run.toml", "[grid]\nnx = 99999999999999999999\n", "line 2, column 6: 99999999999999999999 is too " +
			"large for a number"},
		{"run.toml", "[grid]\nwidth = 1e999\n", "line 2, column 9: 1e999 is too large for a number"},
		{"run.toml", "[grid]\nnx = 0xfffffffffffffffff\n", "line 2, column 6: fffffffffffffffff is too large for " +
			"a number"},
		{"run.toml", "[grid]\nnx = 09\n", "line 2, column 7: '9' stands behind the value"},
		{"run.toml", "[grid]\ndtype = \"float64\n", "line 2, column 17: the quote is not closed"},
		{"run.json", `{"grid": {"width": 1e999}}`, "line 1, column 25: 1e999 is too large for a number"},
		{"run.json", "{'grid': 9}", `line 1, column 2: '\'' in the place of a key, which has double quotes`},
		{"run.json", `{"grid": {"dtype": float64}}`, "line 1, column 21: 'l' in a word that is not true, " +
			"false or null; text has double quotes"},
		{"run.json", `{"grid": {"nx": 09}}`, "line 1, column 18: '9' in the place of a comma or }"},
		{"run.json", `{"grid" 9}`, "line 1, column 9: '9' in the place of a colon"},
		{"run.json", "{", "line 1, column 1: the end is missing: a }, a ] or a quote"},
		{"run.json", "{\n \"grid\": {\n  \"nx\": 5,,\n }}", "line 3, column 11: ',' in the place of a key, which " +
			"has double quotes"},
		{"run.json", "{\"grid\": {\"nx\": 5,\n\"ny\": 5, \"nx\": 6}}",
			"line 2, column 10: the key \"nx\" is given twice"},
		{"run.json", "{\"grid\": {\"nx\": 5}, \"run\": {},\n\n\"grid\": {\"nx\": 6}}",
			"line 3, column 1: the key \"grid\" is given twice"},
		{"run.json", "{\"run\": {\"name\": \"name\"}, \"problem\": {\"fixed\": [{\"a\": {}, \"a\": 1}]}}",
			"line 1, column 59: the key \"a\" is given twice"},
		{"run.json", "{\"grid\": {}}\n{}", "line 2, column 1: '{' after the end"},
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
