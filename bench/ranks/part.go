package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"

	"golang.org/x/sync/errgroup"

	"jacobi/configs"
)

// takePart simulates the ranks of one process. It reads the URL of the server and then the names of phases from
// standard input, and prints each name at the end of its phase.
func (o options) takePart(part int) (err error) {
	if o.profile != "" && part == 0 {
		stop, err := profile(o.profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	server := configs.NATS{URL: in.Text()}
	life, end := context.WithCancelCause(context.Background())
	defer end(nil)
	var ranks []*rank
	for r := part * o.ranks / o.processes; r < (part+1)*o.ranks/o.processes; r++ {
		ranks = append(ranks, &rank{number: r, of: o.ranks, node: o.node, passes: o.passes, server: server,
			timeout: o.timeout, life: life})
	}
	defer func() {
		for _, r := range ranks {
			r.close()
		}
	}()
	for _, phase := range phases {
		if !in.Scan() {
			return nil // another process has failed
		}
		ctx, cancel := context.WithTimeout(life, o.timeout)
		var g errgroup.Group
		for _, r := range ranks {
			g.Go(func() error {
				err := phase.run(r, ctx)
				if err != nil {
					end(err) // or the others would wait for this rank until their timeouts
				}
				return err
			})
		}
		err := g.Wait()
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		fmt.Println(phase.name)
	}
	in.Scan() // until all have ended the last phase
	return nil
}

// profile writes a profile of the processor time to the file, from now until stop is called.
func profile(file string) (stop func() error, err error) {
	out, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return out.Close()
	}, nil
}
