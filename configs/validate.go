package configs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"jacobi/internal/base/show"
	"jacobi/solver"
)

// maxSide bounds nx and ny so that their product and the bytes of a row cannot overflow.
const (
	minSide = 3
	maxSide = math.MaxInt32
)

// Lengths between these bounds have squares and ratios far from the ends of the range of a float64.
const (
	minLength = 1e-30
	maxLength = 1e+30
)

// A coefficient above 0 lies between these bounds: squares and quotients by squares of spacings stay in the range of a
// float64.
const (
	LeastCoefficient = 1e-60
	MostCoefficient  = 1e+60
)

// minLiveness is the least run.liveness. Ranks give several signs of life in that time, some of which may be late.
const minLiveness = time.Second

// maxThreads is more than a node has cores. More threads only wait for each other.
const maxThreads = 4096

// Validate checks whether c describes a run. The error has one line for each fault, with the key, its value and the
// allowed values. Expressions, initial files and memory are checked elsewhere.
func Validate(c Config) error {
	var v validator
	v.grid(c.Grid)
	gridOK := len(v.faults) == 0
	v.shown(c)
	v.atLeast("run.ranks", c.Run.Ranks, 1)
	if c.Run.Liveness < minLiveness {
		v.fault("run.liveness %s: must be at least %s", c.Run.Liveness, minLiveness)
	}
	if _, err := c.Run.Weights(); err != nil && c.Run.Ranks >= 1 {
		v.faults = append(v.faults, err)
	}
	v.atLeast("halo.depth", c.Halo.Depth, 0)
	if gridOK {
		v.depth(c)
	}
	v.problem(c)
	v.solver(c)
	v.oneOf("halo.transport", c.Halo.Transport, "auto", "nats", "p2p", "direct")
	v.oneOf("halo.compress", c.Halo.Compress, "auto", "never", "always")
	v.direct(c.Halo.Direct)
	if c.Halo.Timeout <= 0 {
		v.fault("halo.timeout %s: must be more than 0s", c.Halo.Timeout)
	}
	v.oneOf("device.backend", c.Device.Backend, "auto", "cpu", "cuda")
	if n := c.Device.Threads; n < 0 || n > maxThreads {
		v.fault("device.threads %d: 0 (the node's cores divided by its ranks) to %d are allowed", n, maxThreads)
	}
	if k := c.Device.Kernel; k == "neon" {
		v.fault("device.kernel %q: removed, as plain Go gives the same bits; write device.kernel: auto", k)
	} else {
		v.oneOf("device.kernel", k, "auto", "portable", "avx2", "avx512")
	}
	v.oneOf("device.mps", c.Device.MPS, "auto", "off")
	v.oneOf("device.select", c.Device.Select, "round-robin", "least-utilized", "most-free-memory", "coolest",
		"least-power")
	v.nats(c.NATS)
	v.output(c.Output)
	v.trace(c.Trace)
	v.probes(c)
	v.checkpoint(c.Checkpoint, c.NATS)
	v.metrics(c.Metrics)
	if c.View.Listen != "" {
		if err := CheckLoopback(c.View.Listen); err != nil {
			v.fault("view.listen %q: %w", c.View.Listen, err)
		}
	}
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", c.Log.Format, "console", "json")
	return errors.Join(v.faults...)
}

type validator struct{ faults []error }

func (v *validator) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Errorf(format, args...))
}

func (v *validator) atLeast(key string, n, low int) {
	if n < low {
		v.fault("%s %d: must be at least %d", key, n, low)
	}
}

func (v *validator) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		v.fault("%s %q: allowed are %s", key, value, list(allowed))
	}
}

func (v *validator) direct(d Direct) {
	if _, err := ParseListen(d.Listen); err != nil {
		v.fault("halo.direct.listen %q: %w; it must be WHERE:PORTS, such as :47000-47099, 10.1.0.0/16: or ib0:47000",
			d.Listen, err)
	}
	v.oneOf("halo.direct.encrypt", d.Encrypt, "auto", "always", "never")
}

func (v *validator) grid(g Grid) {
	for _, side := range []struct {
		key string
		n   int
	}{{"grid.nx", g.NX}, {"grid.ny", g.NY}} {
		if !validSide(side.n) {
			v.fault("%s %d: %d to %d are allowed", side.key, side.n, minSide, maxSide)
		}
	}
	v.oneOf("grid.dtype", g.DType, "float32", "float64")
	if !(g.Width >= minLength && g.Width <= maxLength) {
		v.fault("grid.width %s: %g to %g are allowed", formatFloat(g.Width), minLength, maxLength)
	}
	if g.Height != 0 && !(g.Height >= minLength && g.Height <= maxLength) {
		v.fault("grid.height %s: auto, or %g to %g are allowed", formatFloat(g.Height), minLength, maxLength)
	}
	if len(v.faults) == 0 && g.NX > math.MaxInt64/64/g.NY { // leaves room for sums over sizes
		v.fault("grid.nx %d: with grid.ny %d a field has more bytes than 64 bits can count", g.NX, g.NY)
	}
}

func validSide(n int) bool { return n >= minSide && n <= maxSide }

// depth refuses a halo that a rank alone could not fill.
func (v *validator) depth(c Config) {
	if rows := solver.MinRows(c.interior(), 1); c.Solver.Entry().Halo == 0 && c.Halo.Depth > rows {
		v.fault("halo.depth %d: grid.ny %d has %d rows inside; 1 to %d are allowed", c.Halo.Depth, c.Grid.NY, rows,
			rows)
	}
}

func (v *validator) problem(c Config) {
	if _, err := c.Problem.Walls(c.Grid.DType); err != nil {
		v.faults = append(v.faults, err)
	}
	if k, ok := Number(c.Problem.Screening); ok && k < 0 {
		v.fault("problem.screening %s: must be at least 0", c.Problem.Screening)
	}
	if a, ok := Number(c.Problem.Coefficient); ok && a == 0 {
		v.fault("problem.coefficient %s: there would be no material; an expression or a file has 0 where there is none",
			c.Problem.Coefficient)
	} else if ok && !(a >= LeastCoefficient && a <= MostCoefficient) {
		v.fault("problem.coefficient %s: a number must be %g to %g", c.Problem.Coefficient, LeastCoefficient,
			MostCoefficient)
	}
}

// maxRunName is the number of characters for which messages and the title of a picture have room.
const maxRunName = 200

// shown refuses text with characters that would control the terminal on which it is shown.
func (v *validator) shown(c Config) {
	if n := utf8.RuneCountInString(c.Run.Name); n > maxRunName {
		v.fault("run.name %q: %d characters; at most %d are allowed", show.Cut(c.Run.Name, 20), n, maxRunName)
		return
	}
	for _, k := range keys() {
		if k.kind != text || strings.HasPrefix(k.name, "nats.") && k.name != "nats.rendezvous" {
			continue // an expression may span lines, and a key of nats may hold a secret
		}
		if value := k.text(c); strings.ContainsFunc(value, controls) {
			v.fault("%s \"%s\": control characters are not allowed", k.name, show.Text(value))
		}
	}
}

// controls reports whether a terminal may act on r: move the cursor, begin a line or change the direction of writing.
func controls(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}
