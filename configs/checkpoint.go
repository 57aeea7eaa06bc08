package configs

import (
	"fmt"
	"strings"
	"time"

	"jacobi/solver/methods"
)

// Interval is a number of iterations or a time. The zero value means never.
type Interval struct {
	Iterations int    // sweeps, or cycles of multigrid
	Unit       string // sweeps | cycles, as the user named them; "" if not
	Time       time.Duration
}

// String returns "100", "100 sweeps", "5 cycles", "10m" or "".
func (i Interval) String() string {
	switch {
	case i.Iterations > 0:
		return strings.TrimSpace(fmt.Sprintf("%d %s", i.Iterations, i.Unit))
	case i.Time > 0:
		return formatDuration(i.Time)
	}
	return ""
}

// interval reads an Interval.
func (k key) interval(text string) (Interval, bool) {
	if text == "" {
		return Interval{}, true
	}
	count, unit, _ := strings.Cut(text, " ")
	units := map[string]string{"": "", "sweep": "sweeps", "sweeps": "sweeps", "cycle": "cycles", "cycles": "cycles"}
	n, number := toInt(count)
	if u, ok := units[unit]; ok && number {
		return Interval{Iterations: n, Unit: u}, n >= 1
	}
	d, err := time.ParseDuration(text)
	return Interval{Time: d}, k.timed() && err == nil && d > 0
}

// bucketPrefix marks a bucket in a value that may also name a directory.
const bucketPrefix = "nats:"

// On reports whether states are saved.
func (c Checkpoint) On() bool { return c.Every != Interval{} }

// Place returns where states are saved: a directory, "nats:" followed by a bucket, or "" if neither is set. Resume has
// the same form; its directory may also be that of a single checkpoint.
func (c Checkpoint) Place() string {
	if c.NATS != "" {
		return bucketPrefix + c.NATS
	}
	return c.Dir
}

// SplitPlace returns the directory or the bucket that place names. The other result is "".
func SplitPlace(place string) (dir, bucket string) {
	if b, ok := strings.CutPrefix(place, bucketPrefix); ok {
		return "", b
	}
	return place, ""
}

// FieldKeys returns the keys that determine the field after any number of sweeps, with their values; a key that is not
// set has the preset's value. A run may go on from a checkpoint with the same values.
func FieldKeys(c Config) (map[string]string, error) {
	var err error
	if c.Problem, err = c.Problem.Resolve(c.Grid.DType); err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for _, k := range keys() {
		section, leaf, _ := strings.Cut(k.name, ".")
		if section == "grid" && k.text(c) != "" || section == "problem" && leaf != "preset" {
			fields[k.name] = k.text(c)
		}
	}
	if c.Solver.Method != methods.Unnamed {
		fields["solver.method"] = c.Solver.Method
	}
	return fields, nil
}

// isBucket reports whether JetStream allows a name for a bucket.
func isBucket(name string) bool {
	strange := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	return name != "" && len(name) <= 200 && !strings.ContainsFunc(name, strange)
}

func (v *validator) checkpoint(c Checkpoint, n NATS) {
	switch {
	case c.Dir != "" && c.NATS != "":
		v.fault("checkpoint.dir %q, checkpoint.nats %q: only one of them is allowed", c.Dir, c.NATS)
	case c.On() && c.Place() == "":
		v.fault("checkpoint.every %q: checkpoint.dir or checkpoint.nats has to say where", c.Every)
	}
	if strings.HasPrefix(c.Dir, bucketPrefix) {
		v.fault("checkpoint.dir %q: must be a directory; checkpoint.nats takes a bucket", c.Dir)
	}
	_, resumed := SplitPlace(c.Resume)
	for _, b := range []struct {
		key, value, bucket string
		used               bool
	}{{"checkpoint.nats", c.NATS, c.NATS, c.NATS != ""},
		{"checkpoint.resume", c.Resume, resumed, strings.HasPrefix(c.Resume, bucketPrefix)}} {
		switch {
		case b.used && !isBucket(b.bucket):
			v.fault("%s %q: a bucket has 1 to 200 letters, digits, - and _", b.key, b.value)
		case b.used && n.URL == "":
			v.fault("%s %q: nats.url has to name a server with JetStream", b.key, b.value)
		}
	}
}
