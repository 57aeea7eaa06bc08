package oracle_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/npy"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/rank"
)

// outcome is what a run has written.
type outcome struct {
	output.Report
	field []float64
}

// check checks a problem on rank 0, as a launcher does.
func check(ctx context.Context, c configs.Config) (configs.Planned, error) {
	p, err := problem.New(ctx, c)
	if err == nil {
		err = errors.Join(p.Check(ctx), p.Close())
	}
	return configs.Planned{Config: c}, err
}

// run solves the problem of keys in this process, with one or more ranks.
func run(t *testing.T, ranks int, keys ...string) (outcome, error) {
	t.Helper()
	return runFile(t, ranks, "", keys...)
}

// runFile solves the problem of a run file, or of none, and of keys, which have precedence.
func runFile(t *testing.T, ranks int, file string, keys ...string) (outcome, error) {
	t.Helper()
	dir := t.TempDir()
	keys = append([]string{"solver.mesh_error=off"}, keys...)
	keys = append(keys, "output.dir="+dir, "output.picture=", "output.history=", "output.report=", "device.backend=cpu",
		"device.threads=1", fmt.Sprintf("run.ranks=%d", ranks))
	c, err := configs.Load(configs.Options{File: file, Set: keys})
	if err == nil {
		err = configs.Validate(c)
	}
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	errs := make([]error, ranks)
	var all sync.WaitGroup
	for i := range ranks {
		by := roster.Origin{By: "openmpi", Job: "job-1",
			Identity: roster.Identity{Rank: i, Size: ranks, LocalRank: i, LocalSize: ranks}}
		if ranks == 1 {
			by.By, by.Job = roster.Alone, ""
		}
		all.Go(func() {
			_, errs[i] = rank.Run(t.Context(), rank.Options{Origin: by, Config: c, Log: zap.NewNop(), Stop: t.Context(),
				End: func(error) {}, Check: check, Summarize: func(r output.Report, _ *output.Held) error {
					o.Report = r
					return nil
				}})
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return o, err
		}
	}
	o.field, err = read(filepath.Join(dir, "field.npy"))
	return o, err
}

// read returns the values of a .npy file.
func read(path string) ([]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := npy.ReadHeader(f)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var values []float64
	for data = data[h.Size:]; len(data) > 0; {
		if h.Descr == "<f4" {
			values, data = append(values, float64(math.Float32frombits(binary.LittleEndian.Uint32(data)))), data[4:]
		} else {
			values, data = append(values, math.Float64frombits(binary.LittleEndian.Uint64(data))), data[8:]
		}
	}
	return values, nil
}
