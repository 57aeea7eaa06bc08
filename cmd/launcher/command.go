package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jacobi/configs"
	"jacobi/internal/compute/device"
	"jacobi/internal/compute/problem"
	"jacobi/internal/observe/events"
	"jacobi/internal/observe/metrics"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

// options are the flags of a run.
type options struct {
	ranks     int // 0: not given
	where     hosts.Where
	ssh       string
	remoteBin string // directory of the programs on other hosts
	config    string
	set       []string
	export    []string
	tagOutput string
	tag       launch.Tag // parsed tagOutput
	timeout   timeLimit
	restart   bool
	resume    string
	restarts  int // maximal number of restarts
	dryRun    bool
	long      bool
	version   bool
	view      bool
	verbose   bool
	quiet     bool
	asJSON    bool
}

const about = `launcher solves -div(a grad u) + k2 u = f on a 2D mesh by Jacobi's iteration or multigrid,
with one process a rank.

It starts the ranks on this machine, or over ssh on the machines of --host and --hostfile. It connects them
through a NATS server of its own (or the one that the run file names), shows their progress, and prints a
summary. Sources of keys, the strongest first: --set and -np, the environment (JACOBI_GRID_NX for grid.nx),
the run file, the defaults. --dry-run prints all keys.

launcher help KEY tells about a key of the run file, such as solver.method, and launcher help expressions about
the values of problem.left and the other keys of the problem.

The first Ctrl-C stops all ranks at a common sweep, and they write what they have; the second one kills them.

Exit codes: 0 solved, or the iterations that were asked for are done; 1 refused or failed; 2 no arguments, nothing
was started; 4 all is written, but the tolerance was not met; 124 ended by --timeout; 130 and 143 ended by SIGINT
and SIGTERM.`

const examples = `  launcher -np 8
  launcher --config configs/quickstart.yaml
  launcher -np 4 --set grid.nx=4096
  launcher -np 2 --set problem.top='sin(pi*x)' --set grid.nx=1025 \
    --set output.dir=sine
  launcher -np 8 --config run.yaml --dry-run
  launcher -np 8 --host node1:4,node2:4
  launcher doctor -np 8 --host node1:4,node2:4     # would it start?
  launcher -np 8 --hostfile hosts --map-by node
  launcher node --set nats.url=nats://server:4222  # on each node, then
  launcher -np 8 --nodes --set nats.url=nats://server:4222
  launcher -np 8 --config run.yaml --timeout 10m --tag-output
  launcher -np 8 --set checkpoint.every=10m --set checkpoint.dir=checkpoints
  launcher -np 3 --set checkpoint.every=10m --set checkpoint.dir=checkpoints \
    --restart
  launcher -np 8 --view                            # the run in a browser
  launcher bench --ranks 1,2,4,8
  JACOBI_GRID_NX=1024 launcher -np 3 -x GOMAXPROCS=1`

func newCommand(stdout, stderr io.Writer) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:           "launcher [-np N] [--config FILE] [--set key=value]...",
		Short:         "Solve a run file with N ranks",
		Long:          about,
		Example:       examples,
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.version {
				return printVersion(stdout)
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			if o.asJSON {
				return startJSON(cmd.Context(), o, stdout, stderr)
			}
			return start(cmd.Context(), o, nil, stdout, stderr)
		},
	}
	cmd.SetContext(context.Background())
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SetFlagErrorFunc(flagError)
	cmd.SuggestionsMinimumDistance = 2

	f := cmd.Flags()
	o.define(f)
	o.defineRestart(f)
	f.BoolVar(&o.asJSON, "json", false, "print one line of JSON for each event on standard output, the report last")
	f.BoolVar(&o.dryRun, "dry-run", false, "print placement, stripes, memory and the merged configuration; start "+
		"nothing")
	f.BoolVar(&o.long, "long", false, "print all of the summary on a terminal, too: ranks, devices, links, memory")
	f.BoolVar(&o.view, "view", false, "show the run in a browser, at the URL on standard error (view.listen, else "+
		"any free port of 127.0.0.1)")
	f.BoolVar(&o.version, "version", false, "print the version")
	cmd.AddCommand(newBenchCommand(stdout, stderr), newDoctorCommand(stdout, stderr),
		newProbeCommand(stdout, stderr), newSoakCommand(stdout, stderr), newSpawnCommand(),
		newStudyCommand(stdout, stderr), newServeCommand(stdout, stderr),
		newNodeCommand(stderr), newNodesCommand(stdout), newViewCommand(stderr))
	cmd.AddCommand(newVersionCommand(), newCompletionCommand(stdout), &cobra.Command{Use: "expressions",
		Short: "What an expression of the problem may hold", Long: problem.Help()}) // does nothing
	cmd.SetHelpCommand(newHelpCommand())
	completeFlags(cmd)
	fitHelp(cmd)
	return cmd
}

// command completes a command without arguments that plans a run: it checks the flags and calls start.
func (o *options) command(cmd *cobra.Command, start func(context.Context) error) *cobra.Command {
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(cmd); err != nil {
			return err
		}
		return start(cmd.Context())
	}
	return cmd
}

// define defines the flags that all commands which plan a run have.
func (o *options) define(f *pflag.FlagSet) {
	f.SortFlags = false
	f.IntVarP(&o.ranks, "np", "n", 0, "number of ranks, also as -np `N` (default: run.ranks of "+
		"the run file, else the slots of --host, else one for each GPU, else 1)")
	f.StringArrayVarP(&o.where.Hosts, "host", "H", nil,
		"`hosts` with their slots, as in a:4,b:4 (default: all ranks on this machine); repeatable")
	f.StringVar(&o.where.Hostfile, "hostfile", "", "`FILE` with one host a line, as in: a slots=4")
	f.BoolVar(&o.where.Agents, "nodes", false, "place ranks on the agents at nats.url (launcher node)")
	f.DurationVar(&o.where.Wait, "wait", 30*time.Second, "how long to wait for agents with enough slots")
	f.StringVar(&o.where.MapBy, "map-by", "slot", "`ORDER` of the ranks: slot (fill one host, then the next) or "+
		"node (one rank on each host in turn)")
	f.StringVar(&o.ssh, "ssh", "ssh", "`command` that reaches other hosts, as in 'ssh -p 2222'")
	f.StringVar(&o.remoteBin, "remote-bin", "", "`DIR` of launcher and jacobi-rank on other hosts (default: where "+
		"this launcher is)")
	f.StringVarP(&o.config, "config", "c", "", "run `FILE`: .yaml, .toml or .json; - reads YAML from standard input")
	f.StringArrayVar(&o.set, "set", nil, "set a key of the run file, as in `grid.nx=1024`; repeatable")
	f.StringArrayVarP(&o.export, "export", "x", nil, "environment variable for the ranks, `VAR[=value]`; repeatable")
	f.StringVar(&o.tagOutput, "tag-output", "rank",
		"`TAG` before each line of rank 3: rank ([3]), stream ([3]<stderr>) or none")
	f.Lookup("tag-output").NoOptDefVal = "stream"
	f.Var(&o.timeout, "timeout", "stop the run after this time, as in `10m`, and write what there is (default: none)")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print more messages: log.level debug")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print failures and, at the end, the result in one line; log.level error")
}

// check checks the values of flags, and turns flags that stand for keys into keys.
func (o *options) check(cmd *cobra.Command) (err error) {
	if cmd.Flags().Changed("np") {
		if o.ranks < 1 {
			return fmt.Errorf("-np %d: must be at least 1", o.ranks)
		}
		o.set = append(o.set, fmt.Sprintf("run.ranks=%d", o.ranks))
	}
	switch {
	case o.verbose && o.quiet:
		return errors.New("--verbose and --quiet: only one of them is allowed")
	case o.verbose:
		o.set = append(o.set, "log.level=debug")
	case o.quiet:
		o.set = append(o.set, "log.level=error")
	}
	if o.tag, err = launch.ParseTag(o.tagOutput); err != nil {
		return fmt.Errorf("--tag-output %w", err)
	}
	switch changed := cmd.Flags().Changed; {
	case o.restarts < 0:
		return fmt.Errorf("--max-restarts %d: must be at least 0", o.restarts)
	case changed("resume") && o.resume == "":
		return errors.New(`--resume "": must be the directory of a checkpoint; ` + aboutRestart)
	case changed("timeout") && o.timeout.Left <= 0:
		return fmt.Errorf("--timeout %s: must be a positive duration, as in 10m", o.timeout.Text)
	}
	return nil
}

// look returns the style of the lines on the screen.
func (o *options) look(cfg configs.Config) look {
	return look{tag: o.tag, json: cfg.Log.Format == "json", quiet: o.quiet, long: o.long}
}

// load returns the merged configuration.
func (o *options) load() (configs.Config, error) {
	from, err := o.sources(o.set)
	if err != nil {
		return configs.Config{}, err
	}
	return configs.Load(from)
}

// sources returns the sources of keys, with set as those of --set. It sets the variables of -x in this process, since
// they may set keys.
func (o *options) sources(set []string) (configs.Options, error) {
	err := exportAll(o.export)
	return configs.Options{File: o.config, Set: set, Environ: os.Environ(), Stdin: os.Stdin, Decide: o.decide}, err
}

// decide sets the number of ranks where nobody has named one: the slots of the hosts, or one for each GPU of this
// machine. Without either it is one, whose threads take all cores: that solves quickest.
func (o *options) decide(c *configs.Config, given func(key string) bool) error {
	if given("run.ranks") {
		return nil
	}
	if o.where.Agents {
		return errors.New("--nodes: -np has to say how many ranks there are")
	}
	if c.Run.Ranks = o.where.Slots(); c.Run.Ranks == 0 {
		c.Run.Ranks = max(1, gpus(c.Device.Backend))
	}
	return nil
}

// gpus returns the number of GPUs of this machine on which ranks would sweep; 0 if none can be opened.
func gpus(backend string) int {
	node, err := device.Open(device.Options{Backend: backend, Select: device.RoundRobin})
	if err != nil { // what plans a run says so
		return 0
	}
	defer func() { _ = node.Close() }() // only read
	return len(node.Devices)
}

// start executes the command. to, which may be nil, gets the events of --json.
func start(ctx context.Context, o options, to *events.Writer, stdout, stderr io.Writer) error {
	cfg, err := o.load()
	if err != nil {
		return err
	}
	if cfg, err = o.resumed(cfg); err != nil {
		return err
	}
	began := time.Now()
	limited, cancel := o.timeout.bound(ctx)
	defer cancel()
	cfg = attempt.WithMethod(limited, cfg)
	if o.view && cfg.View.Listen == "" {
		cfg.View.Listen = anyPort
	}
	scr := newScreen(stdout, stderr, o.look(cfg))
	scr.events = to
	if cfg.Output.ToStdout() || o.asJSON {
		scr = scr.onStderr()
	}
	if o.asJSON && cfg.Output.ToStdout() {
		return errors.New("--json: standard output is for events; no file of output can go there")
	}
	p, err := plan.Make(limited, cfg, o.where, scr.Say)
	if err != nil {
		return err
	}
	if o.dryRun && o.asJSON {
		fault := p.Check(limited, false)
		e, err := planEvent(p, 1)
		to.Write(e)
		for _, text := range o.warnings(limited, p) {
			scr.warn(text)
		}
		return errors.Join(err, fault)
	}
	if o.dryRun {
		fault := p.Check(limited, false) // finds what the plan tells of islands
		return errors.Join(printPlan(limited, stdout, p, o.warnings(limited, p)), fault)
	}
	w, err := o.starter(p)
	if err != nil {
		return err
	}
	if err := p.Check(limited, true); err != nil {
		return err
	}
	m, err := metrics.Serve(cfg.Metrics, metrics.NewRun(), scr.Say)
	if err != nil {
		return err
	}
	defer m.Close()
	page, err := openView(cfg, scr)
	if err != nil {
		return err
	}
	defer page.close()
	err = solve(ctx, o, cfg, p, w, began, scr, m, page)
	m.Linger(ctx, cfg.Metrics.Linger, func(text string) { scr.Say(text + "; Ctrl-C ends that") })
	return err
}

// starter returns how to start the ranks of p.
func (o *options) starter(p *plan.Plan) (attempt.Starter, error) {
	w := attempt.Starter{SSH: launch.SSH{Command: strings.Fields(o.ssh)}}
	if len(w.SSH.Command) == 0 {
		return w, fmt.Errorf("--ssh %q: must be a command, as in 'ssh -p 2222'", o.ssh)
	}
	if len(p.Here) > 0 {
		if _, err := launch.FindRankBinary(); err != nil {
			return w, err
		}
	}
	dir := o.remoteBin
	if dir == "" {
		self, err := launch.Self()
		if err != nil {
			return w, err
		}
		dir = filepath.Dir(self)
	}
	w.SSH.Program = filepath.Join(dir, "launcher")
	var err error
	w.Vars, err = launch.Variables(o.export, os.LookupEnv)
	return w, err
}

// exportAll sets the variables of -x in this process, so that a JACOBI_ variable means the same to the launcher and to
// the ranks.
func exportAll(flags []string) error {
	vars, err := launch.Variables(flags, os.LookupEnv)
	if err != nil {
		return err
	}
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("-x %s: %w", name, err)
		}
	}
	return nil
}
