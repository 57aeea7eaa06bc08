// Package configs loads and checks run files.
package configs

import "time"

// Config is the configuration of one run, merged from flags, environment, file and defaults, in that order of
// precedence. The tags of a key say what values it takes: its name, its kind where the type leaves that open, the least
// and the largest integer, and the words that are allowed.
type Config struct {
	Run        Run        `key:"run"`
	Grid       Grid       `key:"grid"`
	Problem    Problem    `key:"problem"`
	Solver     Solver     `key:"solver"`
	Halo       Halo       `key:"halo"`
	Device     Device     `key:"device"`
	NATS       NATS       `key:"nats"`
	Output     Output     `key:"output"`
	Trace      Trace      `key:"trace"`
	Checkpoint Checkpoint `key:"checkpoint"`
	Metrics    Metrics    `key:"metrics"`
	View       View       `key:"view"`
	Log        Log        `key:"log"`
}

// Run names a run and says how many ranks share it.
type Run struct {
	Name     string        `key:"name"`
	Ranks    int           `key:"ranks" min:"1"`
	Liveness time.Duration `key:"liveness"` // a rank that is silent for this long counts as dead
	Balance  string        `key:"balance"`  // BalanceEqual | BalanceAuto | a weight for each rank; see Weights
}

// Grid is the whole mesh, boundary included.
type Grid struct {
	NX    int    `key:"nx" min:"3" max:"2147483647"`
	NY    int    `key:"ny" min:"3" max:"2147483647"`
	DType string `key:"dtype" allowed:"float32 float64"` // of the field; see typed
	// Named is grid.dtype as the user gave it; "" if it is left open. It is no key.
	Named string `key:"-"`
	// From is the key of the file that NX and NY are taken from; "" if they are not. It is no key.
	From string `key:"-"`
	// Width and Height are the lengths of the sides in the unit of the problem.
	Width  float64 `key:"width"`
	Height float64 `key:"height" kind:"length"` // 0: auto, which makes the spacings equal
	Axis   string  `key:"axis"`                 // left | right | top | bottom: of a body of revolution; "": none
}

// Problem is a preset, or one of the user's own, and the values that replace parts of it; an empty string keeps the
// preset's value (see Resolve).
// A number is kept as its shortest decimal text, however it was written.
type Problem struct {
	Preset string `key:"preset"` // gtc2019 | dirichlet | "": own
	// A side is a value, an expression, periodic, neumann(g), flux(q) or robin(h, g); see ParseSide.
	Left    string `key:"left" kind:"expression"`
	Right   string `key:"right" kind:"expression"`
	Top     string `key:"top" kind:"expression"`
	Bottom  string `key:"bottom" kind:"expression"`
	Initial string `key:"initial" kind:"expression"` // value | expression | file.npy

	Source string `key:"source" kind:"expression"` // value | expression | file.npy
	Fixed  string `key:"fixed" kind:"expression"`  // condition | file.npy | picture
	// Drawing is a picture whose Colours say which points are fixed, and at what values; see ParseColours.
	Drawing string `key:"drawing" kind:"expression"`
	Colours string `key:"colours" kind:"colours"`
	Regions string `key:"regions" kind:"regions"` // that keep values, in the place of Fixed; see ParseRegions

	// Coefficient and Screening are a and k2 of -div(a grad u) + k2 u = f: value | expression | file.npy
	Coefficient string `key:"coefficient" kind:"expression"`
	Screening   string `key:"screening" kind:"expression"`
	// Dir is the directory of the run file, in which inputs are looked for first; "" for the working directory. It
	// is no key.
	Dir string `key:"-"`
}

// Solver names the method and says when it ends. An iteration is a sweep of Jacobi's method or a
// cycle of multigrid.
type Solver struct {
	// Method is Jacobi or Multigrid. Load replaces Auto by one of them.
	Method string `key:"method"`
	// Why says why Auto took Method; "" where the user named it. It is no key.
	Why string `key:"-"`

	// Tolerance and RelativeTolerance are those in force; 0: none.
	Tolerance         float64 `key:"tolerance"`
	RelativeTolerance float64 `key:"relative_tolerance"`
	// DefaultTolerance reports that the user has named none. It is no key.
	DefaultTolerance bool `key:"-"`
	MaxIterations    int  `key:"max_iterations" min:"1"`
	// NormEvery is the number of sweeps of Jacobi's method from one norm to the next.
	NormEvery int `key:"norm_every" min:"1"`

	// MeshError says whether a run of multigrid also solves coarser meshes, which tell the mesh's own error.
	MeshError string `key:"mesh_error" allowed:"auto on off"`
}

// Halo says how rows travel between neighbours.
type Halo struct {
	Transport string        `key:"transport" allowed:"auto nats p2p direct"`
	Depth     int           `key:"depth" kind:"depth"` // 0: auto
	Timeout   time.Duration `key:"timeout"`
	Compress  string        `key:"compress" allowed:"auto never always"`
	Direct    Direct        `key:"direct"`
}

// Direct says how links over TCP are made, if the transport is direct.
type Direct struct {
	Listen  string `key:"listen"` // see halo.ParseListen
	Encrypt string `key:"encrypt" allowed:"auto always never"`
}

// Device says which device sweeps, and how.
type Device struct {
	Backend string `key:"backend" allowed:"auto cpu cuda"`
	Threads int    `key:"threads" max:"4096"` // 0: the node's cores divided by its ranks
	Kernel  string `key:"kernel" allowed:"auto portable avx2 avx512"`
	// Select chooses among a node's GPUs.
	Select string `key:"select" allowed:"round-robin least-utilized most-free-memory coolest least-power"`
	Pin    bool   `key:"pin"` // keep a rank with a GPU on the cores near it
	// MPS is NVIDIA's multi-process service, used if ranks share GPUs.
	MPS string `key:"mps" allowed:"auto off"`
}

// Checkpoint says when and where the state of a run is saved, and from which state the run starts.
type Checkpoint struct {
	Every Interval `key:"every"` // zero: never
	Dir   string   `key:"dir"`   // must be shared by all nodes
	// NATS is a bucket of JetStream's object store; it replaces Dir.
	NATS   string `key:"nats"`
	Keep   int    `key:"keep" min:"1"` // number of newest checkpoints to keep
	Resume string `key:"resume"`       // "": start with the initial field; see Place
}

// View says where the run can be seen in a browser.
type View struct {
	Listen string `key:"listen"` // see CheckLoopback; "": nowhere
}

// Log configures zap.
type Log struct {
	Level  string `key:"level" allowed:"debug info warn error"`
	Format string `key:"format" allowed:"console json"`
}

// Default returns the configuration of an empty run file.
func Default() Config {
	return Config{
		Run:     Run{Ranks: 1, Liveness: 10 * time.Second, Balance: BalanceEqual},
		Grid:    Grid{NX: 16384, NY: 16384, DType: "float32", Width: 1},
		Problem: Problem{Preset: benchmark},
		Solver: Solver{Method: Jacobi, Why: presetWhy, Tolerance: defaultTolerance,
			DefaultTolerance: true, MaxIterations: 1000, NormEvery: 1, MeshError: Auto},
		Halo:   Halo{Transport: "auto", Timeout: 30 * time.Second, Compress: "auto", Direct: Direct{Encrypt: "auto"}},
		Device: Device{Backend: "auto", Kernel: "auto", Select: "round-robin", Pin: true, MPS: "auto"},
		Output: Output{
			Dir: "out", Field: "field.npy", Picture: "field.png", History: "history.csv", Report: "report.json",
			PictureScale: "auto", Results: true,
		},
		Trace:      Trace{Passes: 500},
		Checkpoint: Checkpoint{Keep: 2},
		Log:        Log{Level: "info", Format: "console"},
	}
}
