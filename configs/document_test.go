package configs

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// passed passes c to another process.
func passed(c Config) (Config, error) {
	v, err := Start{Planned: Planned{Config: c}}.Variable()
	if err != nil {
		return Config{}, err
	}
	s, err := FromLauncher([]string{v, "JACOBI_GRID_NX=3", "JACOBI_RUN_NAME=of the node"})
	return s.Config, err
}

// An order cannot change what belongs to the start, and faults in a document are named.
func TestFromDocument(t *testing.T) {
	own := Default()
	own.NATS.URL = "nats://own"
	c, err := FromDocument([]byte(`{"keys": {"grid.nx": "9", "nats.creds": "/etc/shadow", "run.ranks": "7"}}`), own)
	if err != nil || c.Grid.NX != 9 || c.NATS != own.NATS || c.Run != own.Run {
		t.Errorf("%+v, %v", c, err)
	}
	job := Planned{Config: Default(), Contents: map[string]string{`problem.source "f.npy"`: "0123456789abcdef"}}
	for _, want := range []map[string]string{job.Contents, {}, nil} {
		job.Contents = want
		document, err := Document(job)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := FromDocument(document, Default()); err != nil || !reflect.DeepEqual(got.Contents, want) {
			t.Errorf("contents %#v, %v, want %#v", got.Contents, err, want)
		}
	}
	for env, want := range map[string]string{
		"":                                     "environment JACOBI_JOB: document of a job: ",
		EnvJob + `={"keys": {"grid.nx": "x"}}`: `environment JACOBI_JOB: document of a job: grid.nx "x": `,
	} {
		if _, err := FromLauncher([]string{env}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", env, err, want)
		}
	}
}

// A change to a start leaves the rest of it, and of the environment, as it is.
func TestAmend(t *testing.T) {
	first := Start{Planned{Default(), map[string]string{"f": "0"}}, Task{Soak: []byte(`{"for":1}`), Stats: true}}
	first.NATS.SecretFile, first.Grid.NX = "inline:secret", 99
	v, err := first.Variable()
	if err != nil {
		t.Fatal(err)
	}
	env, err := Amend([]string{v, "GOGC=1"}, func(s *Start) { s.NATS.URL, s.Study = "nats://own", true })
	if err != nil || len(env) != 2 || env[0] != "GOGC=1" {
		t.Fatalf("%q, %v", env, err)
	}
	want := first
	want.NATS.URL, want.Study = "nats://own", true
	if got, err := FromLauncher(env); err != nil || !reflect.DeepEqual(got.Contents, want.Contents) ||
		!reflect.DeepEqual(got.Task, want.Task) || got.NATS != want.NATS || got.Grid.NX != 99 {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := Amend([]string{"GOGC=1"}, func(*Start) {}); err == nil {
		t.Error("there is no start")
	}
}

// What an environment cannot hold, or JSON would change, is refused before a rank starts.
func TestVariableThatCannotBePassed(t *testing.T) {
	long, binary := Default(), Default()
	long.NATS.CA = strings.Repeat("x", 70<<10)
	long.Problem.Initial = strings.Repeat("1+", 30<<10) + "1"
	binary.NATS.SecretFile = "inline:\xff"
	for _, c := range []struct {
		config Config
		want   string
	}{
		{long, "the keys of a rank take 133258 bytes and 131071 are allowed; the longest is nats.ca"},
		{binary, "nats.secret_file: its content is not text in UTF-8"},
	} {
		if _, err := passed(c.config); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// The hash changes with each key on which ranks must agree, and with no other.
func TestHash(t *testing.T) {
	free := map[string]bool{
		"run.name": true, "device.backend": true, "device.threads": true, "device.kernel": true, "device.select": true,
		"device.pin": true, "device.mps": true,
		"nats.url": true, "nats.user": true, "nats.password_file": true, "nats.creds": true, "nats.nkey": true,
		"nats.ca": true, "nats.cert": true, "nats.key": true, "nats.secret_file": true, "nats.port": true,
		"nats.advertise": true, "nats.rendezvous": true, "output.dir": true, "checkpoint.dir": true,
		"checkpoint.resume": true, "halo.direct.listen": true, "metrics.listen": true, "metrics.linger": true,
		"view.listen": true, "log.level": true, "log.format": true,
	}
	base := Default()
	base.NATS = NATS{"", "x", "x", "x", "x", "x", "x", "x", "x", 1, "x", "x"}
	base.Checkpoint.Dir = "x"
	seen := map[string]string{Hash(base): "the default"}
	for _, k := range keys() {
		key, c := k.name, base
		k.set(&c, k.value(odd))
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
}

// odd is a configuration in which every key differs from its default.
var odd = Config{
	Run:  Run{Name: `a "b": #c`, Ranks: 3, Liveness: time.Minute, Balance: "3, 1.5,1e1"},
	Grid: Grid{NX: 100, NY: 200, DType: "float64", Named: "float64", Width: 2.5, Height: 5, Axis: "left"},
	Problem: Problem{Preset: "dirichlet", Left: "neumann(0)", Right: "sin(pi*y)", Top: "periodic", Bottom: "periodic",
		Initial: "start.npy", Source: "sin(x)", Fixed: "plates.png", Drawing: "board.png",
		Colours: "#b87333 name=strip value=1; #ffffff", Regions: "a value=1 where=x < 0.5", Coefficient: "2",
		Screening: "0.25"},
	Solver: Solver{Method: "multigrid", Tolerance: 1.25e-7, RelativeTolerance: 0.5,
		MaxIterations: 12345678, NormEvery: 7, MeshError: "on"},
	Halo: Halo{Transport: "p2p", Depth: 5, Compress: "never", Timeout: 90*time.Minute + 1500*time.Millisecond,
		Direct: Direct{Listen: ":47000", Encrypt: "never"}},
	Device: Device{Backend: "cpu", Threads: 2, Kernel: "portable", Select: "coolest", MPS: "off"},
	NATS:   NATS{URL: "nats://a:4222,tls://b", CA: "ca.pem"},
	Output: Output{
		Dir: "elsewhere", Field: "f.npy", Picture: "", History: "h.csv", Report: "r.json", PictureScale: "sqrt",
		Contours: 7, Every: Interval{Iterations: 30}, Float32: true, Gradient: true,
		Matrix: true, Materials: true, Trace: "t.json",
		Probes: "a=[3,4]", ProbesEvery: Interval{Iterations: 7},
	},
	Trace:   Trace{Passes: 7, From: 20, To: 30},
	Metrics: Metrics{Listen: "[::1]:9464", Linger: 90 * time.Minute},
	View:    View{Listen: "localhost:1"},
	Log:     Log{Level: "debug", Format: "json"},

	Checkpoint: Checkpoint{Every: Interval{Time: 90 * time.Minute}, NATS: "bucket_1", Keep: 5, Resume: "nats:bucket_0"},
}

func TestRoundTrip(t *testing.T) {
	named := Default()
	named.Solver.Why, named.Solver.DefaultTolerance, named.Grid.Named = "", false, "float32"
	for _, c := range []Config{named, odd} {
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
		c.Solver.Why, c.Solver.DefaultTolerance = "a reason", true
		if got, err := passed(c); err != nil || got != c {
			t.Errorf("passed on: %+v, %v, want %+v", got, err, c)
		}
	}
}

// Text shows defaults, says what tolerance a run has, and hides users and secrets.
func TestYAMLText(t *testing.T) {
	c := Default()
	c.NATS = NATS{URL: "nats://user:secret@host:4222", Creds: "/home/user/secret.creds", CA: Inline("PEM"),
		Cert: "/etc/cert.pem", Key: "/etc/key.pem", SecretFile: Inline("secret")}
	got, err := YAML(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"run:\n  name: \"\"\n  ranks: 1\n  liveness: 10s\n  balance: equal\ngrid:\n  nx: 16384\n",
		"\n  # no tolerance is named: tolerance 1e-08\n  max_iterations: 1000\n",
		"\n  direct:\n    listen: \"\"\n    encrypt: auto\ndevice:\n",
		`
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
`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no\n%s\nin\n%s", want, got)
		}
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
