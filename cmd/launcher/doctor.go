package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/examine"
	"jacobi/internal/launch"
	"jacobi/internal/output"
	"jacobi/internal/problem"
	"jacobi/internal/roster"
	"jacobi/internal/show"
	"jacobi/internal/version"
	"jacobi/internal/wire"
	"jacobi/solver"
)

const aboutDoctor = `doctor tries the start of a run: put it behind "launcher" in the command line of the run. It starts
the ranks on their places as the run would; they meet, find their GPUs and the way to each neighbour, take their memory,
load the field, reserve the outputs, say what they found, and end before the first sweep. What they made is removed.

Exit codes: 0 the run would start, warnings or not; 1 it would not, each fault with what to do.`

func newDoctorCommand(stdout, stderr io.Writer) *cobra.Command {
	var o options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [-np N] [--config FILE] [--set key=value]...",
		Short: "Say whether a run would start, and what each node and each pair of ranks would use",
		Long:  aboutDoctor,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			quiet := io.Discard // what the ranks say of faults, the diagnosis says as well
			if o.verbose {
				quiet = stderr
			}
			return examineRun(cmd.Context(), o, asJSON, stdout, newScreen(quiet, quiet, look{tag: o.tag}))
		},
	}
	o.define(cmd.Flags())
	o.defineRestart(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the diagnosis as JSON")
	return cmd
}

// diagnosis says whether a run would start.
type diagnosis struct {
	Starts   bool           `json:"starts"`
	Run      string         `json:"run,omitempty"`      // in words; "" if its places are not known
	Expected string         `json:"expected,omitempty"` // of the end of the run, in words
	Version  string         `json:"version"`            // of this launcher
	Faults   []finding      `json:"faults"`
	Warnings []finding      `json:"warnings"`
	Nodes    []nodeFindings `json:"nodes"`
	Ranks    []examine.Rank `json:"ranks"`
	// Output is output.dir, which is this machine's; nil if nothing is to be written there.
	Output *examine.Place `json:"output,omitempty"`
}

// finding is something that is wrong and what to do about it.
type finding struct {
	What string `json:"what"`
	Do   string `json:"do"`
}

// nodeFindings is what the ranks of one node say of it.
type nodeFindings struct {
	Host    string `json:"host"`
	Reached string `json:"reached"` // this machine, ssh or agent
	Ranks   []int  `json:"ranks"`
	Threads int    `json:"threads"`      // of the CPU that its ranks keep busy
	Needed  int64  `json:"needed_bytes"` // of the node's memory, by its ranks without GPUs
	examine.Node
}

// fault notes what keeps the run from starting: a line each.
func (d *diagnosis) fault(err error, do string) {
	if err == nil {
		return
	}
	for line := range strings.SplitSeq(show.Values(err.Error()), "\n") {
		if !slices.ContainsFunc(d.Faults, func(f finding) bool { return f.What == line }) {
			d.Faults = append(d.Faults, finding{line, do})
		}
	}
}

func (d *diagnosis) warn(do, format string, args ...any) {
	d.Warnings = append(d.Warnings, finding{fmt.Sprintf(format, args...), do})
}

// examineRun tries the start of a run and says what came of it.
func examineRun(ctx context.Context, o options, asJSON bool, stdout io.Writer, scr *screen) error {
	d := &diagnosis{Version: version.String(), Faults: []finding{}, Warnings: []finding{}, Nodes: []nodeFindings{},
		Ranks: []examine.Rank{}}
	if err := d.examine(ctx, o, scr); err != nil {
		return err
	}
	d.Starts = len(d.Faults) == 0
	write := d.print
	if asJSON {
		write = d.printJSON
	}
	if err := write(stdout); err != nil {
		return fmt.Errorf("print the diagnosis: %w", err)
	}
	if !d.Starts {
		return exitError{launch.ExitFailed}
	}
	return nil
}

// examine takes the steps of a run. What needs no rank is looked at as a whole, so that all faults are known at once;
// ranks are started if there is none. An error is no fault of the run: the examination came to no end.
func (d *diagnosis) examine(ctx context.Context, o options, scr *screen) error {
	cfg, err := o.load()
	for _, text := range strayVariables(os.Environ()) { // after load, which sets those of -x
		d.warn("unset it, or set the variable that was meant", "%s", text)
	}
	if err == nil {
		cfg, err = o.resumed(cfg)
	}
	if err != nil {
		d.fault(err, correctKey)
		return nil
	}
	defer examine.Undo(cfg.Output.Dir)()
	defer examine.Undo(cfg.Checkpoint.Dir)()
	if err := configs.Validate(cfg); err != nil {
		d.fault(err, correctKey)
		d.withoutPlan(ctx, cfg)
		return nil
	}
	scr.look = o.look(cfg)
	at, err := o.places.place(ctx, cfg, scr.say)
	if err != nil {
		d.fault(err, "ask for fewer ranks with -np, or give more places: --host, --hostfile, or agents (launcher "+
			"node) at nats.url")
		if o.places.nodes { // which were looked for at the server
			cfg.NATS.URL = ""
		}
		d.withoutPlan(ctx, cfg)
		return nil
	}
	p, err := newPlan(cfg, at)
	d.fault(err, "correct the key that it names")
	if p == nil {
		return nil
	}
	p.trial = true
	d.Run = p.String()
	for _, text := range p.notes {
		d.warn("give another file or grid.dtype if that is not wanted", "%s", text)
	}
	w, err := o.way(p)
	if err != nil {
		d.fault(err, "build both programs (make build) and keep them in one folder")
		return nil
	}
	for _, f := range p.faults(ctx, true) {
		d.fault(f.error, f.do)
	}
	d.outlook(ctx, p)
	d.server(ctx, cfg)
	d.reach(ctx, p, w.ssh, scr)
	if len(d.Faults) > 0 {
		return nil
	}
	if err := d.output(p); err != nil {
		return err
	}
	w.vars = append(w.vars, examine.Env+"=1")
	c := &collected{ranks: make([]examine.Rank, len(p.ranks))}
	end, err := runRanks(ctx, p, w, o.timeout, scr, func() progress { return c })
	if err != nil {
		d.fault(err, "correct it on the host that it names")
		return nil
	}
	return d.conclude(p, end.Outcome, c)
}

const correctKey = "correct the key or flag; launcher --dry-run prints all keys"

// withoutPlan looks at what needs none, where keys or places do not make one: those parts of cfg that have no fault
// yet.
func (d *diagnosis) withoutPlan(ctx context.Context, cfg configs.Config) {
	sound := func(sections ...string) bool {
		return !slices.ContainsFunc(d.Faults, func(f finding) bool {
			return slices.ContainsFunc(sections, func(s string) bool { return strings.HasPrefix(f.What, s+".") })
		})
	}
	if sound("grid", "problem") {
		prob, err := problem.New(cfg)
		d.fault(err, correctProblem)
		if err == nil {
			d.fault(prob.Close(), correctProblem)
		}
	}
	if sound("output") && len(cfg.Output.Names()) > 0 {
		d.fault(output.CheckDir(cfg.Output.Dir), correctOutput)
	}
	if sound("nats") {
		d.server(ctx, cfg)
	}
}

// outlook tells how the run would end, and warns of a tolerance that its type cannot attain.
func (d *diagnosis) outlook(ctx context.Context, p *plan) {
	o, err := p.outlook(ctx)
	if err != nil {
		return // the problem's faults are known
	}
	s := p.cfg.Solver
	d.Expected = o.Expected(s.Tolerance, s.MaxIterations)
	if what, do := o.Warning(s.Tolerance); what != "" {
		d.warn(do, "%s", what)
	}
}

// output tells of output.dir.
func (d *diagnosis) output(p *plan) error {
	o := p.cfg.Output
	if len(o.Names()) == 0 {
		return nil
	}
	room, err := p.room()
	if err != nil {
		return err
	}
	place := examine.Place{Key: "output.dir", Dir: o.Dir, Needed: room.Bytes()}
	if d.Output, err = place.Measure(); err != nil {
		return fmt.Errorf("output.dir %q: %w", o.Dir, err)
	}
	return nil
}

// server looks at the NATS server of the user, if there is one.
func (d *diagnosis) server(ctx context.Context, cfg configs.Config) {
	if cfg.NATS.URL == "" {
		return
	}
	conn, err := wire.Connect(ctx, wire.Options{Server: cfg.NATS, Name: "jacobi launcher (doctor)",
		Timeout: connectTimeout, Logger: zap.NewNop()})
	if err != nil {
		d.fault(fmt.Errorf("nats.url: %w", err), "start a server there, or correct nats.url and the key of its user: "+
			"nats.password_file, creds, nkey or cert, and ca")
		return
	}
	conn.Close()
}

// reach looks whether the hosts answer.
func (d *diagnosis) reach(ctx context.Context, p *plan, ssh launch.SSH, scr *screen) {
	h, err := reach(ctx, p, ssh, scr.say)
	if err != nil {
		d.fault(err, "ssh HOST has to work without a question, and both programs, of this version, to be there in "+
			"--remote-bin")
		return
	}
	d.fault(h.close(), "look whether the host is still there")
}

// collected is a progress that keeps what ranks found before one of them failed.
type collected struct{ ranks []examine.Rank }

func (c *collected) event(e roster.Event) {
	var r examine.Rank
	if e.Kind == roster.Examined && e.Rank >= 0 && e.Rank < len(c.ranks) && json.Unmarshal(e.Report, &r) == nil {
		c.ranks[e.Rank] = r
	}
}

func (c *collected) close() {}

// conclude says what the ranks found.
func (d *diagnosis) conclude(p *plan, out launch.Outcome, c *collected) error {
	if out.Err == nil && out.ExitCode() != launch.ExitOK {
		return exitError{out.ExitCode()}
	}
	ranks := c.ranks
	if out.Err == nil {
		if err := json.Unmarshal(out.Report, &ranks); err != nil {
			return fmt.Errorf("the ranks were ready to sweep, but what they found was lost: %w", err)
		}
	}
	said := map[string]bool{} // by several ranks at once, which agree on a fault
	for _, r := range ranks {
		if r.Fault != "" && !r.Consequence && !said[r.Fault] {
			said[r.Fault] = true
			d.fault(fmt.Errorf("rank %d on %s: %s", r.Rank, p.ranks[r.Rank].Host, r.Fault),
				"correct it on that host, or run elsewhere")
		}
	}
	if out.Err != nil && len(d.Faults) == 0 {
		d.fault(out.Err, "correct it on that host, or run elsewhere; -v shows what the ranks say")
	}
	d.Ranks = slices.DeleteFunc(ranks, func(r examine.Rank) bool { return r.Node.Version == "" })
	d.nodes(p)
	d.weigh()
	return nil
}

// nodes sums up the ranks of each node.
func (d *diagnosis) nodes(p *plan) {
	for _, host := range p.names() {
		n := nodeFindings{Host: host, Reached: "ssh"}
		switch {
		case p.agents != nil:
			n.Reached = "agent"
		case p.here[host]:
			n.Reached = "this machine"
		}
		for _, r := range d.Ranks {
			if p.ranks[r.Rank].Host != host {
				continue
			}
			if n.Ranks == nil {
				n.Node = r.Node
			}
			n.Ranks = append(n.Ranks, r.Rank)
			n.NATSRoundTrip, n.Files = min(n.NATSRoundTrip, r.Node.NATSRoundTrip), max(n.Files, r.Node.Files)
			if r.Report == nil {
				continue
			}
			n.Threads += r.Report.Threads
			if r.Report.GPU == nil {
				n.Needed += r.Report.MemoryBytes
			}
		}
		if n.Ranks != nil {
			d.Nodes = append(d.Nodes, n)
		}
	}
}

// clockTolerance is how far the clocks of nodes may lie apart before certificates, and the order of log lines, suffer.
const clockTolerance = time.Second

// weigh warns of what slows a run down or may end it later.
func (d *diagnosis) weigh() {
	for _, n := range d.Nodes {
		if n.Threads > n.Cores {
			d.warn("start fewer ranks there, or set device.threads", "%s: %d threads of %s share %d cores", n.Host,
				n.Threads, roster.FormatRanks(n.Ranks), n.Cores)
		}
		if c := n.Clock; c != nil && math.Abs(c.Ahead)-c.Error > clockTolerance.Seconds() {
			d.warn("let both keep time by NTP: certificates have a begin and an end", "%s: %s", n.Host, clockText(c))
		}
	}
	users := map[string][]int{}
	for _, r := range d.Ranks {
		if r.Report != nil && r.Report.GPU != nil && r.Report.GPU.UUID != "" {
			users[r.Report.GPU.UUID] = append(users[r.Report.GPU.UUID], r.Rank)
		}
	}
	for _, uuid := range slices.Sorted(maps.Keys(users)) {
		if ranks := users[uuid]; len(ranks) > 1 {
			d.warn("start one rank a GPU, and give each container GPUs of its own", "%s share one GPU, %s",
				roster.FormatRanks(ranks), uuid)
		}
	}
}

// link is how rows go between a rank and the one below it.
type link struct {
	ranks [2]int
	output.LinkReport
	access string // of one GPU to the other; "" if it is not known
}

// links returns the links of all pairs of neighbours that are known.
func (d *diagnosis) links() (links []link) {
	gpus := map[int]string{} // UUID by rank
	for _, r := range d.Ranks {
		if r.Report != nil && r.Report.GPU != nil {
			gpus[r.Rank] = r.Report.GPU.UUID
		}
	}
	for _, r := range d.Ranks {
		if r.Report == nil {
			continue
		}
		t, ok := r.Report.Transports[solver.Bottom.String()]
		if !ok {
			continue
		}
		l := link{ranks: [2]int{r.Rank, t.Neighbour}, LinkReport: t}
		if can, known := r.PeerAccess[gpus[t.Neighbour]]; known {
			l.access = map[bool]string{true: "; peer access between the GPUs",
				false: "; no peer access between the GPUs"}[can]
		}
		links = append(links, l)
	}
	return links
}
