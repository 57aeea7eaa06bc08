package main

import (
	"context"
	"reflect"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/metrics"
	"jacobi/internal/observe/stats"
	"jacobi/internal/run/launch"
)

// Ranks are asked for statistics where an agent serves metrics. If it could not read them, the ranks start without.
func TestPrepareMeasuredRanks(t *testing.T) {
	conn := wire.Over(rostertest.Start(t, 0).Dial())
	for secret, warning := range map[string]string{
		"inline:0123456789abcdef": "",
		"inline:short":            "nats.secret_file: a secret of 5 bytes; it must have at least 16",
	} {
		core, logs := observer.New(zap.WarnLevel)
		done := 0
		prepare := measuredRanks{metrics.NewNode(), conn, zap.New(core)}.prepare(
			func(context.Context, *launch.Spec) (func(), error) { return func() { done++ }, nil })
		env := []string{configs.EnvJob + `={"keys": {"run.ranks": "2"}}`, "JACOBI_NATS_SECRET_FILE=" + secret}
		spec := &launch.Spec{Env: env, Ranks: []roster.Identity{{RunID: "run", Rank: 1, Size: 2}}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		end, err := prepare(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		end()
		var said []any
		for _, line := range logs.All() {
			said = append(said, line.Message, line.ContextMap()["run"], line.ContextMap()["error"])
		}
		wantEnv, wantSaid := append(env[:2:2], stats.Env+"=1"), []any(nil)
		if warning != "" {
			wantEnv, wantSaid = env, []any{"ranks without metrics", "run", warning}
		}
		if done != 1 || !reflect.DeepEqual(spec.Env, wantEnv) || !reflect.DeepEqual(said, wantSaid) {
			t.Errorf("%s: ended %d times, environment %q, log %q; want once, %q, %q", secret, done, spec.Env, said,
				wantEnv, wantSaid)
		}
	}
}
