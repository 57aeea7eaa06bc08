package reduce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/shm"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
)

// The ranks of TestProcesses are this binary, started with the server, the nodes and the rank in the environment.
const (
	envURL   = "JACOBI_REDUCE_TEST_URL"
	envNodes = "JACOBI_REDUCE_TEST_NODES"
	envRank  = "JACOBI_REDUCE_TEST_RANK"
)

const processPasses = 500

func TestMain(m *testing.M) {
	if os.Getenv(envURL) == "" {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := process(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process runs one rank.
func process(ctx context.Context) error {
	nodes := strings.Split(os.Getenv(envNodes), ",")
	rank, err := strconv.Atoi(os.Getenv(envRank))
	if err != nil {
		return err
	}
	conn, err := wire.Connect(ctx, wire.Options{Server: configs.NATS{URL: os.Getenv(envURL)},
		Timeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer conn.Close()
	comm, err := roster.Join(ctx, conn, testMember(rank, len(nodes), nodes[rank]), 10*time.Second)
	if err != nil {
		return err
	}
	defer comm.Close()
	r, err := New(comm.Context(), Options{Comm: comm, MaxSums: testSums, Window: testWindow, Timeout: 20 * time.Second,
		Spin: shm.SpinTime((len(nodes) + 1) / 2)})
	if err != nil {
		return err
	}
	err = drive(comm.Context(), r, rank, len(nodes), processPasses)
	if err == nil {
		err = comm.Barrier(ctx, "end")
	} else {
		err = errors.Join(err, comm.Abort(err))
	}
	return errors.Join(err, r.Close())
}

func TestProcesses(t *testing.T) {
	for _, nodes := range []string{"a,a,a", "a,b,a,b,c"} {
		t.Run(nodes, func(t *testing.T) {
			s := rostertest.Start(t, 0)
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for rank := range strings.Split(nodes, ",") {
				cmd := exec.CommandContext(t.Context(), exe)
				cmd.Env = append(os.Environ(), envURL+"="+s.URL(), envNodes+"="+nodes, envRank+"="+strconv.Itoa(rank))
				wg.Go(func() {
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Errorf("rank %d: %v: %s", rank, err, out)
					}
				})
			}
			wg.Wait()
		})
	}
}
