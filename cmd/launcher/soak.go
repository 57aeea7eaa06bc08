package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
	"jacobi/internal/tools/soak"
)

// soakOptions are the flags of soak.
type soakOptions struct {
	options
	length      time.Duration
	stopOnError bool
	asJSON      bool
	flip        string
}

const aboutSoak = `soak finds devices that compute wrong bits. Every rank solves the problem of the run file again and
again on its device: in turn each rank the whole mesh alone, and all ranks together, one stripe each. After every step
the SHA-256 of each row must be that of a reference, which the CPU of rank 0 computes once, before the first round.
A device whose rows differ is named with the round and the rows.

A step does solver.max_iterations sweeps, whatever the tolerance. Without grid.nx the mesh has 16384 x 16384 points, or
1024 x 1024 where this machine has no GPU. soak writes no files.

While it runs, soak shows the temperature, power, clocks, ECC errors and throttling of GPUs where NVML tells them.
Ctrl-C sums up after the current step.

Exit codes: 0 all bits are right; 1 refused, failed, or some bits were wrong; 124 ended by --timeout; 130 and 143 ended
by SIGINT and SIGTERM with no wrong bits.`

const soakExamples = `  launcher soak --for 10m
  launcher soak --for 12h --json --host node1:8,node2:8 >soak.jsonl
  launcher soak -np 64 --set device.backend=cpu --set device.threads=1
  launcher soak --for 1s --flip-bit rank=0,round=1,row=100  # shows a fault`

func newSoakCommand(stdout, stderr io.Writer) *cobra.Command {
	var o soakOptions
	cmd := o.command(&cobra.Command{
		Use:     "soak [--for 10m] [-np N] [--config FILE] [--set key=value]...",
		Short:   "Solve a problem repeatedly to find devices that compute wrong bits",
		Long:    aboutSoak,
		Example: soakExamples,
	}, func(ctx context.Context) error { return startSoak(ctx, o, stdout, stderr) })
	f := cmd.Flags()
	f.DurationVar(&o.length, "for", 10*time.Minute, "how long, as in `10m`; at least one round is complete")
	f.BoolVar(&o.stopOnError, "stop-on-error", false, "end after the first step with wrong bits")
	f.BoolVar(&o.asJSON, "json", false, "print one line of JSON for each event on standard output")
	f.StringVar(&o.flip, "flip-bit", "",
		"flip one bit of a rank's field, as in `rank=1,round=2,row=50`, to see it found")
	o.define(f)
	return cmd
}

// startSoak checks the flags and the run, then starts the ranks.
func startSoak(ctx context.Context, o soakOptions, stdout, stderr io.Writer) error {
	if o.length <= 0 {
		return fmt.Errorf("--for %v: must be a positive duration, as in 10m", o.length)
	}
	from, err := o.sources(o.set)
	if err != nil {
		return err
	}
	from.Decide = o.decide
	cfg, err := configs.Load(from)
	if err == nil {
		cfg, err = soakConfig(cfg)
	}
	if err != nil {
		return err
	}
	limited, cancel := o.timeout.bound(ctx)
	defer cancel()
	scr := newScreen(stdout, stderr, o.look(cfg))
	if o.asJSON {
		scr = scr.onStderr()
	}
	p, err := plan.Make(limited, cfg, o.where, scr.Say)
	if err != nil {
		return err
	}
	order, err := o.order(p)
	if err != nil {
		return err
	}
	w, err := o.starter(p)
	if err != nil {
		return err
	}
	if err := errors.Join(p.AllWork(), p.Check(limited, false), checkSoakMemory(limited, p)); err != nil {
		return err
	}
	for _, text := range p.Warnings(os.Environ()) {
		scr.warn(text)
	}
	task, err := json.Marshal(order)
	if err != nil {
		return err
	}
	scr.Say(fmt.Sprintf("%s; soaking for %v with %d sweeps a step", p, o.length, cfg.Solver.MaxIterations))
	if order.Flip != nil {
		scr.warn(fmt.Sprintf("--flip-bit: in round %d, rank %d begins with a wrong bit in row %d", order.Flip.Round,
			order.Flip.Rank, order.Flip.Row))
	}
	shown := &soakProgress{screen: scr, both: len(p.Placements) > 1}
	if o.asJSON {
		shown.lines = scr.data
	}
	end, err := attempt.Run(ctx, p, attempt.Options{Starter: w, Task: configs.Task{Soak: task}, Limit: o.timeout.Limit,
		Screen: scr, Stdout: scr.data, Show: func() (func(roster.Event), func()) { return shown.event, nil }})
	if err != nil {
		return err
	}
	return shown.conclude(end)
}

// soaked is the side of the mesh of a soak of CPUs that nobody has named. A thousand sweeps of it take seconds.
const soaked = 1024

// decide is that of any command. Without GPUs the mesh is one that a CPU sweeps in seconds.
func (o *soakOptions) decide(c *configs.Config, given func(key string) bool) error {
	here := !o.where.Agents && o.where.Slots() == 0
	if here && !given("grid.nx") && !given("grid.ny") && gpus(c.Device.Backend) == 0 {
		c.Grid.NX, c.Grid.NY = soaked, soaked
	}
	return o.options.decide(c, given)
}

// soakConfig returns the configuration of the ranks: all sweeps from the initial field, and no files.
func soakConfig(c configs.Config) (configs.Config, error) {
	c = c.Prefer(configs.Jacobi, "soak counts sweeps")
	if c.Solver.Method != configs.Jacobi {
		return c, fmt.Errorf("solver.method %q: soak sweeps by Jacobi's iteration; allowed here is jacobi",
			c.Solver.Method)
	}
	c.Solver.Tolerance, c.Solver.RelativeTolerance = 0, 0
	c.Output = configs.Output{Dir: c.Output.Dir, PictureScale: c.Output.PictureScale}
	c.Checkpoint = configs.Default().Checkpoint
	return c, nil
}

// order returns the order for the ranks of p.
func (o *soakOptions) order(p *plan.Plan) (soak.Order, error) {
	order := soak.Order{For: o.length, StopOnError: o.stopOnError}
	if o.flip == "" {
		return order, nil
	}
	f, err := soak.ParseFlip(o.flip)
	if err != nil {
		return order, fmt.Errorf("--flip-bit %q: %w", o.flip, err)
	}
	rows := p.Mesh.Interior()
	if f.Rank >= len(p.Placements) || f.Row < rows.Lo || f.Row >= rows.Hi {
		return order, fmt.Errorf("--flip-bit %q: allowed are ranks 0 to %d and rows %d to %d", o.flip,
			len(p.Placements)-1, rows.Lo, rows.Hi-1)
	}
	order.Flip = f
	return order, nil
}

// checkSoakMemory compares the memory of the ranks on this machine that sweep on CPUs, each with the whole mesh beside
// its stripe, with what there is. Whether the memory of GPUs suffices turns out when the ranks start.
func checkSoakMemory(ctx context.Context, p *plan.Plan) error {
	if p.OnGPUs || len(p.Placements) == 1 {
		return nil
	}
	cfg := p.Config
	cfg.Run.Ranks = 1
	alone, err := plan.Make(ctx, cfg, hosts.Where{MapBy: "slot"}, func(string) {})
	if err != nil {
		return err
	}
	need := p.BytesHere()
	for _, r := range p.Placements {
		if p.Here[r.Host] {
			need += alone.Memory[0]
		}
	}
	if err := configs.CheckMemory(need); err != nil {
		return fmt.Errorf("grid.nx %d, grid.ny %d: every rank holds the whole mesh: %w; take a smaller grid",
			p.Mesh.NX, p.Mesh.NY, err)
	}
	return nil
}

// soakProgress shows what the ranks of a soak report: differences at once, other lines every few seconds, and with
// --json every event.
type soakProgress struct {
	screen *screen
	lines  io.Writer // standard output, for --json; nil for none
	both   bool      // a round has two steps
	seen   soak.Total
	next   time.Time // of the next line
	unread bool      // devices without readings have been named
	broken error     // a line of JSON that could not be written
}

func (p *soakProgress) event(e roster.Event) {
	var s soak.Event
	if e.Kind != roster.Soaked || json.Unmarshal(e.Report, &s) != nil {
		return
	}
	p.line(s)
	switch {
	case s.Reference != nil:
		p.screen.Say(s.Reference.String())
	case s.Working != nil:
		p.say(s.Working.String())
	case s.Step != nil:
		p.step(*s.Step)
	}
}

func (p *soakProgress) step(s soak.Step) {
	if text := s.Unread(); text != "" && !p.unread {
		p.unread = true
		p.screen.Say(text)
	}
	for _, d := range p.seen.Add(s, p.both) {
		p.screen.fail(d.String())
	}
	p.say(s.String())
}

// say shows a line if the last one is some seconds old.
func (p *soakProgress) say(text string) {
	if now := time.Now(); !now.Before(p.next) {
		p.next = now.Add(lineInterval)
		p.screen.Say(text)
	}
}

// line prints an event as a line of JSON.
func (p *soakProgress) line(s soak.Event) {
	if p.lines == nil || p.broken != nil {
		return
	}
	data, err := json.Marshal(s)
	if err == nil {
		_, err = p.lines.Write(append(data, '\n'))
	}
	p.broken = err
}

// conclude prints the total and returns the exit code as an error. The total that rank 0 sends counts; if a rank has
// failed, it is what this launcher has seen.
func (p *soakProgress) conclude(end attempt.Ended) error {
	total := p.seen
	var last soak.Event
	switch {
	case end.Err != nil:
		p.screen.fail(end.Err.Error())
	case end.Killed():
		p.screen.fail("the ranks were killed")
	case json.Unmarshal(end.Report, &last) != nil || last.End == nil:
		p.screen.fail("the ranks ended well, but their total is lost")
		return launch.ExitError{Code: launch.ExitFailed}
	default:
		total = *last.End
	}
	p.line(soak.Event{Event: "end", End: &total})
	if p.broken != nil {
		return fmt.Errorf("print an event: %w", p.broken)
	}
	if p.lines == nil {
		if _, err := fmt.Fprintln(p.screen.stdout, total); err != nil {
			return fmt.Errorf("print the total: %w", err)
		}
	}
	if total.Differing > 0 {
		return exit(launch.ExitFailed)
	}
	return exit(end.ExitCode())
}
