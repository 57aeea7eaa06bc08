package configs

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"jacobi/solver"
)

func TestValidateAccepts(t *testing.T) {
	c := odd
	c.Halo.Depth, c.Solver.NormEvery = 0, 1 // which multigrid lacks
	c.Output.Results = true                 // which a matrix needs
	if err := Validate(c); err != nil {
		t.Error(err)
	}
	c = Default()
	c.Run.Name = strings.Repeat("ü", 200)
	c.Problem.Initial = "x\n+ y"
	c.Solver.Tolerance = 0
	c.Output = Output{Dir: ".", PictureScale: "sqrt"}
	c.Checkpoint = Checkpoint{Every: Interval{Iterations: 1}, Dir: "x", Keep: 1, Resume: "y"}
	c.Grid.NX, c.Grid.NY, c.Run.Ranks = 3, 3, 1
	if err := Validate(c); err != nil {
		t.Error(err)
	}
}

// Words and integers are refused beside those that the tags of their keys allow.
func TestTagsOfKeys(t *testing.T) {
	refuses := func(k key, value any, want string) {
		t.Helper()
		c := Default()
		k.set(&c, value)
		if err := Validate(c); err == nil || !slices.Contains(strings.Split(err.Error(), "\n"), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	var words, integers int
	for _, k := range keys() {
		switch {
		case len(k.words) > 1:
			words++
			last := len(k.words) - 1
			refuses(k, "none such", fmt.Sprintf("%s \"none such\": allowed are %s and %s", k.name,
				strings.Join(k.words[:last], ", "), k.words[last]))
		case (k.kind == integer || k.kind == depth) && k.high == math.MaxInt:
			integers++
			refuses(k, k.low-1, fmt.Sprintf("%s %d: must be at least %d", k.name, k.low-1, k.low))
		case k.kind == integer:
			integers++
			for _, n := range []int{k.low - 1, k.high + 1} {
				refuses(k, n, fmt.Sprintf("%s %d: %d to %d are allowed", k.name, n, k.low, k.high))
			}
		}
	}
	if words < 12 || integers < 13 {
		t.Errorf("%d keys with words and %d with integers, want at least 12 and 13", words, integers)
	}
	for _, balance := range []string{"fair", "", "1,2,0,3", "1, -2,1,3", "1,2,1,NaN", "1,Inf,1,1", "2,1"} {
		c := Default()
		c.Run.Ranks, c.Run.Balance = 4, balance
		want := fmt.Sprintf("run.balance %q: must be equal, auto, or a positive number for each of 4 ranks, as in 2,1",
			balance)
		if err := Validate(c); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// invalid are changes that make the default configuration invalid, and the errors of Validate.
var invalid = []struct {
	change func(*Config)
	want   string
}{
	{func(c *Config) { c.Grid.NX, c.Grid.NY = math.MaxInt32, math.MaxInt32 },
		`grid.nx 2147483647: with grid.ny 2147483647 a field has more bytes than 64 bits can count`},
	{func(c *Config) { c.Run.Name = strings.Repeat("n", 20000) },
		`run.name "nnnnnnnnnnnnnnnnnnnn…": at most 200 characters are allowed`},
	{func(c *Config) { c.Run.Name = "\x1b]0;a\a\u202e" },
		`run.name "\x1b]0;a\a\u202e": control characters are not allowed`},
	{func(c *Config) { c.Output.Dir = "a\nb" }, `output.dir "a\nb": control characters are not allowed`},
	{func(c *Config) { c.Checkpoint.Resume = "\u009b" },
		`checkpoint.resume "\u009b": control characters are not allowed`},
	{func(c *Config) { c.Run.Liveness = time.Millisecond }, `run.liveness 1ms: must be at least 1s`},
	{func(c *Config) { c.Grid.NY, c.Halo.Depth = 64, 10000 },
		`halo.depth 10000: 1 to 62 are allowed with grid.ny 64`},
	{func(c *Config) { c.Problem.Preset = "gtc" }, `problem.preset "gtc": allowed are gtc2019 and dirichlet; ` +
		`a problem of your own has none`},
	{func(c *Config) { c.Problem.Top = "1" },
		`problem.top "1" and problem.bottom "periodic": both or neither can be periodic`},
	{func(c *Config) { c.Problem.Left = "periodic" }, `problem.left "periodic" and problem.right ` +
		`"sin(2 * float32(pi) * iy / (ny - 1))": both or neither can be periodic`},
	{func(c *Config) { c.Problem.Left, c.Problem.Right = "neumann(1", "neumann" },
		"problem.left \"neumann(1\": must be neumann(g) with the outward derivative g\n" +
			`problem.right "neumann": must be neumann(g) with the outward derivative g`},
	{func(c *Config) { c.Problem.Left = "robin(max(1, 2))" },
		`problem.left "robin(max(1, 2))": must be robin(h, g) with h and g of a du/dn + h u = g`},
	{func(c *Config) { c.Solver.MeshError = "on" },
		`solver.mesh_error "on": needs solver.method multigrid, not jacobi`},
	{func(c *Config) { c.Problem.Coefficient = "-2" },
		`problem.coefficient -2: a number must be 1e-60 to 1e+60`},
	{func(c *Config) { c.Problem.Left = "flux(1, 2)" },
		`problem.left "flux(1, 2)": must be flux(q) with the inward flux q = a du/dn`},
	{func(c *Config) { c.Problem.Left = "neumann(0) + 1" },
		`problem.left "neumann(0) + 1": must be neumann(g) with the outward derivative g`},
	{func(c *Config) { c.Problem.Screening = "-1" },
		`problem.screening -1: must be at least 0`},
	{func(c *Config) { c.Grid.Width = 0 }, `grid.width 0: 1e-30 to 1e+30 are allowed`},
	{func(c *Config) { c.Grid.Height = -2 }, `grid.height -2: auto, or 1e-30 to 1e+30 are allowed`},
	{func(c *Config) { c.Solver.Tolerance = -1e-8 },
		`solver.tolerance -1e-08: must be a finite number of at least 0`},
	{func(c *Config) { c.Solver.Tolerance = math.NaN() },
		`solver.tolerance NaN: must be a finite number of at least 0`},
	{func(c *Config) { c.Solver.Method = "newton" },
		`solver.method "newton": allowed are auto, jacobi and multigrid`},
	{func(c *Config) { cycles(c); c.Solver.RelativeTolerance = 1 },
		`solver.relative_tolerance 1: must be a number of at least 0 and below 1`},
	{func(c *Config) { cycles(c); c.Grid.DType = "float32" },
		`grid.dtype "float32": needs solver.method jacobi, not multigrid`},
	{func(c *Config) { c.Solver.NormEvery = 1001 },
		`solver.norm_every 1001: a run of at most solver.max_iterations 1000 sweeps would have no norm`},
	{func(c *Config) { c.View.Listen = ":80" },
		`view.listen ":80": must be an address of this machine alone with a port, as in 127.0.0.1:0`},
	{func(c *Config) { c.Halo.Direct.Listen = "ib0" }, `halo.direct.listen "ib0": must be WHERE:PORTS, such as ` +
		`:47000-47099, 10.1.0.0/16:, [::1]: or ib0:47000`},
	{func(c *Config) { c.Metrics.Listen = "localhost:http" },
		`metrics.listen "localhost:http": must be HOST:PORT`},
	{func(c *Config) { c.Metrics.Linger = -time.Second }, `metrics.linger -1s: must be at least 0s`},
	{func(c *Config) { c.Halo.Timeout = 0 }, `halo.timeout 0s: must be more than 0s`},
	{func(c *Config) { c.Output.Gradient, c.Output.Field = true, "" },
		`output.gradient true: output.field has to name a file`},
	{func(c *Config) { c.Output.Every.Iterations, c.Output.Field = 7, "" },
		`output.every "7": output.field has to name a file`},
	{func(c *Config) { c.Output.Every.Iterations, c.Output.Field = 7, strings.Repeat("f", 107)+".npy" },
		`output.field: a name of 111 bytes; at most 110 are allowed`},
	{func(c *Config) { c.Output.Probes, c.Output.Every.Iterations = "a=(0,2)", 5 },
		`output.probes "a=(0,2)": x and y must be from 0 to 1, ix from 0 to 16383 and iy from 0 to 16383`},
	{func(c *Config) {
		c.Output.Probes, c.Output.ProbesEvery.Iterations, c.Output.History = "a=(0,1)", 3, "probes.csv"
	}, `output.probes "probes.csv": output.history has this name`},
	{func(c *Config) { c.NATS.URL = "localhost:4222" },
		`nats.url "localhost:4222": must be nats://host:port; allowed are nats, tls, ws and wss`},
	{func(c *Config) { c.NATS.URL = "http://u:p@h" },
		`nats.url "http://hidden@h": must be nats://host:port; allowed are nats, tls, ws and wss`},
	{func(c *Config) { c.NATS = NATS{URL: "nats://h,nats://u:p@h", Creds: "c", NKey: "n"} },
		`a user in nats.url and nats.creds and nats.nkey: only one of them is allowed`},
	{func(c *Config) { c.NATS.Advertise = "gate:4222" },
		`nats.advertise "gate:4222": must be names or addresses without a port, with commas between them`},
	{func(c *Config) { c.NATS = NATS{URL: "nats://h", User: "u"} },
		`nats.user and nats.password_file: set both or neither`},
	{func(c *Config) { c.NATS = NATS{URL: "tls://h", Key: "k"} },
		`nats.cert and nats.key: set both or neither`},
	{func(c *Config) { c.Output.Dir = "" }, `output.dir "": must be a directory ("." for the current one)`},
	{func(c *Config) { c.Output.Field = "a/b" },
		`output.field "a/b": must be a plain file name; output.dir says where`},
	{func(c *Config) { c.Output.Report = "field.npy" },
		`output.report "field.npy": the name has to end in .json, or be "-"`},
	{func(c *Config) { c.Output.Trace = "report.json" },
		`output.report "report.json": output.trace has this name`},
	{func(c *Config) { c.Trace.From, c.Trace.To = 10, 10 },
		`trace.to 10: must be more than trace.from (10), or 0 for the end of the run`},
	{func(c *Config) { c.Output.Field = "a.txt" }, `output.field "a.txt": the name has to end in .npy, .vti or .zarr`},
	{func(c *Config) { c.Output.History = "npy" },
		`output.history "npy": the name has to end in .csv, or be "-"`},
	{func(c *Config) { c.Output.History, c.Output.Report = "-", "-" },
		`output.report "-": output.history has this name`},
	{func(c *Config) { c.Output.History = strings.Repeat("x", 200) + ".csv" },
		`output.history: a name of 204 bytes; at most 120 are allowed`},
	{func(c *Config) { c.Checkpoint.Every.Iterations = 5 },
		`checkpoint.every "5": checkpoint.dir or checkpoint.nats has to say where`},
	{func(c *Config) { c.Checkpoint.Dir, c.Checkpoint.NATS, c.NATS.URL = "a", "b", "nats://h" },
		`checkpoint.dir "a", checkpoint.nats "b": only one of them is allowed`},
	{func(c *Config) { c.Checkpoint.Dir = "nats:b" },
		`checkpoint.dir "nats:b": must be a directory; checkpoint.nats takes a bucket`},
	{func(c *Config) { c.Checkpoint.NATS = "b" },
		`checkpoint.nats "b": nats.url has to name a server with JetStream`},
	{func(c *Config) { c.Checkpoint.NATS, c.NATS.URL = "a.b", "nats://h" },
		`checkpoint.nats "a.b": a bucket has 1 to 200 letters, digits, - and _`},
	{func(c *Config) { c.Checkpoint.Resume = "nats:" },
		`checkpoint.resume "nats:": a bucket has 1 to 200 letters, digits, - and _`},
	{func(c *Config) { c.Run.Ranks, c.Grid.NX, c.Halo.Timeout = -1, 1, -time.Second },
		"run.ranks -1: must be at least 1\ngrid.nx 1: 3 to 2147483647 are allowed\n" +
			"halo.timeout -1s: must be more than 0s"},
}

func TestValidateRefuses(t *testing.T) {
	for _, c := range invalid {
		conf := Default()
		conf.Solver.Why, conf.Run.Ranks = "", 4
		c.change(&conf)
		if err := Validate(conf); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// cycles makes c a run of multigrid.
func cycles(c *Config) { c.Solver.Method, c.Grid.DType = Multigrid, "float64" }

// The working ranks are the most that solver.Partition accepts, also for the highest mesh; with one rank, a depth that
// it does not accept is refused.
func TestWorking(t *testing.T) {
	for ny := 3; ny < 100; ny++ {
		interior := solver.Stripe{Lo: 1, Hi: ny - 1}
		for ranks := 1; ranks < 15; ranks++ {
			for depth := 1; depth < 20; depth++ {
				c := Default()
				c.Grid.NY, c.Run.Ranks, c.Halo.Depth = ny, ranks, depth
				if err := Validate(c); (err == nil) != (depth <= ny-2) {
					t.Fatalf("ny %d, depth %d: %v", ny, depth, err)
				} else if err != nil {
					continue
				}
				working := c.Working()
				_, accepted := solver.Partition(interior, working, depth)
				_, more := solver.Partition(interior, working+1, depth)
				if working > ranks || accepted != nil || working < ranks && more == nil {
					t.Fatalf("ny %d, ranks %d, depth %d: %d work (%v, %v)", ny, ranks, depth, working, accepted, more)
				}
				if (c.Idle() == "") != (working == ranks) {
					t.Fatalf("%d of %d ranks work: %q", working, ranks, c.Idle())
				}
			}
		}
	}
	c := Default()
	c.Grid.NX, c.Grid.NY, c.Run.Ranks, c.Halo.Depth = 3, math.MaxInt32, math.MaxInt, 1<<20
	if n := c.Working(); n != 2047 || Validate(c) != nil {
		t.Errorf("%d ranks work, want 2047 (%v)", n, Validate(c))
	}
}

func TestIdle(t *testing.T) {
	for _, c := range []struct {
		ny, ranks, depth int
		method, want     string
	}{
		{40, 4, 0, Jacobi, ""},
		{40, 8, 0, Jacobi, "3 of 8 ranks stay idle: grid.ny 40 has rows for 5"},
		{40, 3, 0, Multigrid, "1 of 3 ranks stays idle: with solver.method multigrid, grid.ny 40 has rows for 2"},
		{64, 8, 8, Jacobi, "4 of 8 ranks stay idle: with halo.depth 8, grid.ny 64 has rows for 4"},
		{3, 2, 0, Multigrid, "1 of 2 ranks stays idle: with solver.method multigrid, grid.ny 3 has rows for 1"},
		{16384, math.MaxInt64, 0, Jacobi,
			"9223372036854773759 of 9223372036854775807 ranks stay idle: grid.ny 16384 has rows for 2048"},
	} {
		k := Default()
		k.Problem.Preset, k.Grid.NY, k.Run.Ranks, k.Halo.Depth, k.Solver.Method = "dirichlet", c.ny, c.ranks, c.depth,
			c.method
		if got := k.Idle(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// The row of a Neumann wall is swept, so more ranks may share the mesh.
func TestRanksOfNeumannWalls(t *testing.T) {
	c := Default()
	c.Grid.NY, c.Run.Ranks, c.Problem.Preset = 9, 2, "dirichlet"
	if n := c.Working(); n != 1 {
		t.Errorf("%d ranks share rows 1 to 7, which are one group", n)
	}
	c.Problem.Bottom = "neumann(0)"
	if n := c.Working(); n != 2 {
		t.Errorf("%d ranks share two groups", n)
	}
}

// A run misses its tolerance only if it was to meet one: not the benchmark with its own, not without a tolerance, and
// not multigrid with the default one if only rounding is left.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		set    []string
		reason solver.StopReason
		want   Verdict
	}{
		{nil, solver.MaxIterations, Done},
		{nil, solver.Converged, Met},
		{nil, solver.Interrupted, Interrupted},
		{[]string{"solver.tolerance=1e-3"}, solver.MaxIterations, Missed},
		{[]string{"solver.tolerance=1e-3"}, solver.Stalled, Missed},
		{[]string{"solver.tolerance=1e-3"}, solver.Interrupted, Interrupted},
		{[]string{"solver.tolerance=1e-3"}, "", Done}, // launcher probe does no iteration
		{[]string{"solver.tolerance=0"}, solver.MaxIterations, Done},
		{[]string{"solver.tolerance=0"}, solver.Stalled, Done},
		{[]string{"problem.preset=dirichlet"}, solver.MaxIterations, Missed},
		{[]string{"problem.preset=dirichlet"}, solver.Stalled, Met}, // multigrid has proven the floor of rounding
		{[]string{"problem.preset=dirichlet"}, solver.Stagnated, Missed},
		{[]string{"problem.preset=dirichlet", "solver.method=jacobi"}, solver.Stalled, Missed},
		{[]string{"problem.preset=dirichlet", "solver.relative_tolerance=1e-8"}, solver.Stalled, Missed},
		{[]string{"problem.preset=gtc2019"}, solver.Stalled, Done},
		{[]string{"problem.preset=gtc2019", "solver.method=multigrid"}, solver.Stalled, Met},
		{[]string{"problem.preset=dirichlet", "solver.tolerance=0"}, solver.MaxIterations, Done},
	} {
		cfg, err := Load(Options{Set: c.set})
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Solver.Verdict(c.reason); got != c.want {
			t.Errorf("%q, %s: %s, want %s", c.set, c.reason, got, c.want)
		}
		again, err := passed(cfg)
		if err != nil || again.Solver.IterationsAsked() != cfg.Solver.IterationsAsked() ||
			again.Solver.Verdict(c.reason) != c.want {
			t.Errorf("%q: the ranks disagree with the launcher, %v", c.set, err)
		}
	}
}

func TestParseListen(t *testing.T) {
	for text, want := range map[string]ListenAt{
		"":                    {},
		":47000":              {Lo: 47000, Hi: 47000},
		":47000-47099":        {Lo: 47000, Hi: 47099},
		"10.1.2.3:":           {Where: "10.1.2.3"},
		"10.1.0.0/16:1-65535": {Where: "10.1.0.0/16", Lo: 1, Hi: 65535},
		"ib0:47000":           {Where: "ib0", Lo: 47000, Hi: 47000},
		"[fd00::/8]:47000":    {Where: "fd00::/8", Lo: 47000, Hi: 47000},
		"[::1]:":              {Where: "::1"},
	} {
		if got, err := ParseListen(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"ib0", "::1:47000", ":0", ":9-8", ":65536", ":1-2-3", "10.1.2.3:x", "[::1:", "a:9:"} {
		if got, err := ParseListen(text); err == nil {
			t.Errorf("%q: %+v; want an error", text, got)
		}
	}
}
