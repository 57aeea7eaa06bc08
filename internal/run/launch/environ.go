package launch

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"jacobi/internal/net/roster"
)

var reserved = []string{roster.EnvRank, roster.EnvSize, roster.EnvLocalRank, roster.EnvLocalSize, roster.EnvRunID}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// NewRunID returns the random name of a run, 32 hexadecimal digits.
func NewRunID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// Variables turns the values of -x into "VAR=value". It looks up the value of a plain "VAR" with lookup.
func Variables(flags []string, lookup func(string) (string, bool)) ([]string, error) {
	var vars []string
	for _, f := range flags {
		name, value, given := strings.Cut(f, "=")
		if !variableName.MatchString(name) {
			return nil, fmt.Errorf("-x %q: allowed are VAR and VAR=value", f)
		}
		if slices.Contains(reserved, name) {
			return nil, fmt.Errorf("-x %s: the launcher sets this variable for each rank", name)
		}
		if !given {
			var ok bool
			if value, ok = lookup(name); !ok {
				return nil, fmt.Errorf("-x %s: not set in the environment; -x %s=value sets it", name, name)
			}
		}
		vars = append(vars, name+"="+value)
	}
	return vars, nil
}
