package configs

import (
	"strings"
	"testing"
)

// passed passes c to another process.
func passed(c Config) (Config, error) {
	env, err := Environ(c)
	if err != nil {
		return Config{}, err
	}
	return FromLauncher(append(env, "JACOBI_GRID_NX=3", "JACOBI_RUN_NAME=of the node"))
}

// A document cannot say how a server is reached, and faults in it are named.
func TestFromLauncher(t *testing.T) {
	c, err := FromLauncher([]string{EnvJob + `={"keys": {"grid.nx": "9", "nats.creds": "/etc/shadow"}}`,
		"JACOBI_NATS_URL=nats://own"})
	if err != nil || c.Grid.NX != 9 || c.NATS.Creds != "" || c.NATS.URL != "nats://own" {
		t.Errorf("%+v, %v", c, err)
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
