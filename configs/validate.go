package configs

import (
	"errors"
	"fmt"
	"math"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize/english"

	"jacobi/internal/base/show"
	"jacobi/solver"
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

// Validate checks whether c describes a run. The error has one line for each fault, with the key, its value and the
// allowed values. Expressions, initial files and memory are checked elsewhere.
func Validate(c Config) error {
	var v validator
	root := reflect.ValueOf(c)
	for _, k := range keys() {
		v.key(k, root.FieldByIndex(k.index).Interface())
	}
	v.grid(c)
	if c.Run.Liveness < minLiveness {
		v.fault("run.liveness %s: must be at least %s", c.Run.Liveness, minLiveness)
	}
	if _, err := c.Run.Weights(); err != nil && c.Run.Ranks >= 1 {
		v.faults = append(v.faults, err)
	}
	v.problem(c)
	v.solver(c)
	if _, err := ParseListen(c.Halo.Direct.Listen); err != nil {
		v.fault("halo.direct.listen %q: %w", c.Halo.Direct.Listen, err)
	}
	if c.Halo.Timeout <= 0 {
		v.fault("halo.timeout %s: must be more than 0s", c.Halo.Timeout)
	}
	v.nats(c.NATS)
	v.output(c)
	v.conductors(c)
	if t := c.Trace; t.To > 0 && t.To <= t.From {
		v.fault("trace.to %d: must be more than trace.from (%d), or 0 for the end of the run", t.To, t.From)
	}
	v.checkpoint(c.Checkpoint, c.NATS)
	if m := c.Metrics.Listen; m != "" && !listens(m) {
		v.fault("metrics.listen %q: must be HOST:PORT", m)
	}
	if c.Metrics.Linger < 0 {
		v.fault("metrics.linger %s: must be at least 0s", c.Metrics.Linger)
	}
	if c.View.Listen != "" {
		if err := CheckLoopback(c.View.Listen); err != nil {
			v.fault("view.listen %q: %w", c.View.Listen, err)
		}
	}
	return errors.Join(v.faults...)
}

type validator struct{ faults []error }

func (v *validator) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Errorf(format, args...))
}

// key checks the bounds of an integer, the words that a text may be, and that text has no characters that would control
// the terminal on which it is shown.
func (v *validator) key(k key, of any) {
	n, isInt := of.(int)
	value, _ := of.(string)
	secret := strings.HasPrefix(k.name, "nats.") && k.name != "nats.rendezvous"
	switch {
	case isInt && n < k.low && k.high == math.MaxInt:
		v.fault("%s %d: must be at least %d", k.name, n, k.low)
	case isInt && !k.holds(n):
		v.fault("%s %d: %d to %d are allowed", k.name, n, k.low, k.high)
	case len(k.words) > 0:
		v.oneOf(k.name, value, k.words...)
	case k.kind != text || secret: // an expression may span lines
	case k.name == "run.name" && utf8.RuneCountInString(value) > maxRunName:
		v.fault("run.name %q: at most %d characters are allowed", show.Cut(value, 20), maxRunName)
	case strings.ContainsFunc(value, controls):
		v.fault("%s \"%s\": control characters are not allowed", k.name, show.Text(value))
	}
}

// holds reports whether n lies within the bounds of an integer.
func (k key) holds(n int) bool { return n >= k.low && n <= k.high }

func (v *validator) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		v.fault("%s %q: allowed are %s", key, value, english.WordSeries(allowed, "and"))
	}
}

func (v *validator) grid(c Config) {
	g := c.Grid
	if !(g.Width >= minLength && g.Width <= maxLength) {
		v.fault("grid.width %s: %g to %g are allowed", formatFloat(g.Width), minLength, maxLength)
	}
	if g.Height != 0 && !(g.Height >= minLength && g.Height <= maxLength) {
		v.fault("grid.height %s: auto, or %g to %g are allowed", formatFloat(g.Height), minLength, maxLength)
	}
	if !validSide(g.NX) || !validSide(g.NY) {
		return
	}
	if g.NX > math.MaxInt64/64/g.NY { // leaves room for sums over sizes
		v.fault("grid.nx %d: with grid.ny %d a field has more bytes than 64 bits can count", g.NX, g.NY)
	}
	// A rank alone could not fill a deeper halo.
	if rows := solver.MinRows(c.interior(), 1); c.Solver.Entry().Halo == 0 && c.Halo.Depth > rows {
		v.fault("halo.depth %d: 1 to %d are allowed with grid.ny %d", c.Halo.Depth, rows, g.NY)
	}
}

// validSide reports whether a mesh may have n points on a side.
func validSide(n int) bool {
	k, _ := keyOf("grid.nx")
	return k.holds(n)
}

func (v *validator) problem(c Config) {
	if err := c.CheckAxis(); err != nil {
		v.faults = append(v.faults, err)
	} else if _, err := c.Problem.Walls(c.Grid.DType); err != nil {
		v.faults = append(v.faults, err)
	}
	if k, ok := Number(c.Problem.Screening); ok && k < 0 {
		v.fault("problem.screening %s: must be at least 0", c.Problem.Screening)
	}
	if a, ok := Number(c.Problem.Coefficient); ok && !(a >= LeastCoefficient && a <= MostCoefficient) {
		v.fault("problem.coefficient %s: a number must be %g to %g", c.Problem.Coefficient, LeastCoefficient,
			MostCoefficient)
	}
}

// maxRunName is the number of characters for which messages and the title of a picture have room.
const maxRunName = 200

// controls reports whether a terminal may act on r: move the cursor, begin a line or change the direction of writing.
func controls(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// CheckLoopback returns an error unless address is HOST:PORT with an address of the loopback interface, or localhost.
func CheckLoopback(address string) error {
	host, _, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); listens(address) && (host == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return errors.New("must be an address of this machine alone with a port, as in 127.0.0.1:0")
}

// listens reports whether address is HOST:PORT with a number for the port. Whether this machine has the host is found
// when the server starts.
func listens(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
