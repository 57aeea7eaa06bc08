package configs

import (
	"reflect"
	"strings"
	"testing"
)

// passed passes c to another process.
func passed(c Config) (Config, error) {
	env, err := Environ(Planned{Config: c})
	if err != nil {
		return Config{}, err
	}
	job, err := FromLauncher(append(env, "JACOBI_GRID_NX=3", "JACOBI_RUN_NAME=of the node"))
	return job.Config, err
}

// A document cannot say how a server is reached, and faults in it are named.
func TestFromLauncher(t *testing.T) {
	c, err := FromLauncher([]string{EnvJob + `={"keys": {"grid.nx": "9", "nats.creds": "/etc/shadow"}}`,
		"JACOBI_NATS_URL=nats://own"})
	if err != nil || c.Grid.NX != 9 || c.NATS.Creds != "" || c.NATS.URL != "nats://own" {
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
