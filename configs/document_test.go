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
	if got, want := Hash(Default()), "9e96424167bc9838f432aa5a7e18fb351232e6431e1ec2b5f3b84b23e0cd0918"; got != want {
		t.Errorf("hash of the default %s, want %s", got, want)
	}
}
