// Package configs loads and checks run files.
package configs

import "time"

// Config is one run, merged from flags, environment, file and defaults in that order of precedence.
type Config struct {
	Run     Run     `mapstructure:"run" json:"run"`
	Grid    Grid    `mapstructure:"grid" json:"grid"`
	Problem Problem `mapstructure:"problem" json:"problem"`
	Solver  Solver  `mapstructure:"solver" json:"solver"`
	Halo    Halo    `mapstructure:"halo" json:"halo"`
	Device  Device  `mapstructure:"device" json:"device"`
	NATS    NATS    `mapstructure:"nats" json:"nats"`
	Output  Output  `mapstructure:"output" json:"output"`
	Log     Log     `mapstructure:"log" json:"log"`
}

// Run names a run and says how many ranks share it.
type Run struct {
	Name  string `mapstructure:"name" json:"name"`
	Ranks int    `mapstructure:"ranks" json:"ranks"`
}

// Grid is the whole mesh, boundary included.
type Grid struct {
	NX    int    `mapstructure:"nx" json:"nx"`
	NY    int    `mapstructure:"ny" json:"ny"`
	DType string `mapstructure:"dtype" json:"dtype"` // float32 | float64
}

// Problem is a preset and what replaces parts of it; an empty string leaves the preset's choice.
type Problem struct {
	Preset  string `mapstructure:"preset" json:"preset"` // gtc2019 | dirichlet
	Left    string `mapstructure:"left" json:"left"`     // value | expression
	Right   string `mapstructure:"right" json:"right"`
	Top     string `mapstructure:"top" json:"top"` // periodic | value | expression
	Bottom  string `mapstructure:"bottom" json:"bottom"`
	Initial string `mapstructure:"initial" json:"initial"` // value | expression | file.npy
}

// Solver says when the iteration ends.
type Solver struct {
	Tolerance     float64 `mapstructure:"tolerance" json:"tolerance"`
	MaxIterations int     `mapstructure:"max_iterations" json:"max_iterations"`
}

// Halo says how rows travel between neighbours.
type Halo struct {
	Transport string        `mapstructure:"transport" json:"transport"` // auto | nats | p2p
	Depth     int           `mapstructure:"depth" json:"depth"`         // 0: auto
	Timeout   time.Duration `mapstructure:"timeout" json:"timeout"`
}

// Device says what sweeps.
type Device struct {
	Backend string `mapstructure:"backend" json:"backend"` // auto | cpu | cuda
	Threads int    `mapstructure:"threads" json:"threads"` // 0: the node's cores over its ranks
}

// NATS says which server connects the ranks; an empty URL: the launcher starts one.
type NATS struct {
	URL   string `mapstructure:"url" json:"url"`
	Creds string `mapstructure:"creds" json:"creds"`
	CA    string `mapstructure:"ca" json:"ca"`
}

// Output names the files of a run; an empty name: not written.
type Output struct {
	Dir     string `mapstructure:"dir" json:"dir"`
	Field   string `mapstructure:"field" json:"field"`
	Picture string `mapstructure:"picture" json:"picture"`
	History string `mapstructure:"history" json:"history"`
	Report  string `mapstructure:"report" json:"report"`
}

// Log sets up zap.
type Log struct {
	Level  string `mapstructure:"level" json:"level"`
	Format string `mapstructure:"format" json:"format"` // console | json
}
