package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
	"jacobi/internal/run/study"
)

// studyOptions are the flags of study.
type studyOptions struct {
	options
	vary  []string
	runs  string
	table string
	goOn  bool
	hash  bool
}

const aboutStudy = `study solves many problems on ranks that start once: the product of the lists
of --vary, or a document of keys on each line of --runs, or both. Each run has
the bits that it has alone.

A table gets a line for each run: its keys, verdict, iterations, seconds, norm,
error, energy, fluxes and charges. A run that is refused, fails or misses its
tolerance has a line that says so, and the study goes on. A rank that dies takes
the run that it was at with it; --max-restarts lets the ranks start again for
the rest. --continue does the runs without a result: those without a line, and
again those that were refused or failed. It needs the keys and files that the
others had; what they had is beside the table, as in study.csv.study.

--set output.results=false leaves out the error and the integrals, and saves a
fifth of the time of a small problem; --hash adds the hash of the field. A run
writes files only if --set, --vary or --runs names them, as in
--set output.field=field.npy: run 7 writes field-7.npy. Keys of the start (run,
device, halo, nats, output.dir) are the same for all runs.

Exit codes: 0 all have done what they should; 4 one missed its tolerance; 1 one
was refused, failed or has no line; 130 and 143 ended by SIGINT and SIGTERM.`

const studyExamples = `  launcher study -np 2 --set problem.top=1 --vary problem.screening=1,10
  launcher study --runs runs.jsonl --table results.jsonl
  launcher study --runs runs.jsonl --table results.jsonl --continue`

func newStudyCommand(stdout, stderr io.Writer) *cobra.Command {
	var o studyOptions
	cmd := o.command(&cobra.Command{
		Use:     "study [-np N] [--vary key=a,b,c]... [--runs FILE]",
		Short:   "Solve many problems on ranks that start once",
		Long:    aboutStudy,
		Example: studyExamples,
	}, func(ctx context.Context) error { return startStudy(ctx, o, stdout, stderr) })
	f := cmd.Flags()
	f.StringArrayVar(&o.vary, "vary", nil, "values of a key, as in `grid.nx=129,257`; repeatable, for all combinations")
	f.StringVar(&o.runs, "runs", "", "`FILE` with a JSON object of keys on each line")
	f.StringVar(&o.table, "table", "", "`FILE` for the table, .csv or .jsonl (default: study.csv in output.dir)")
	f.BoolVar(&o.goOn, "continue", false, "do the runs that have no result in the table")
	f.BoolVar(&o.hash, "hash", false, "add the SHA-256 of each field")
	f.IntVar(&o.restarts, "max-restarts", 0, "start the ranks again up to `N` times when a rank or a host dies, from "+
		"the next run")
	o.define(f)
	return cmd
}

// noFiles are the first keys of --set: a study makes files only where others ask.
var noFiles = []string{"output.field=", "output.picture=", "output.history=", "output.report=",
	"output.gradient=false", "output.materials=false", "output.probes_every="}

// base merges the configuration that all runs of a command begin with.
func (o *options) base() (*configs.Base, error) {
	from, err := o.sources(append(append([]string{}, noFiles...), o.set...))
	if err != nil {
		return nil, err
	}
	return configs.LoadBase(from)
}

// The most points of a problem that one rank solves alone: of a study, whose runs are known ahead, and of requests,
// which may come one by one, so that the time of each counts.
const (
	studyAlone = 1_100_000
	serveAlone = 300_000
)

// startStudy checks flags and runs, then starts the ranks.
func startStudy(ctx context.Context, o studyOptions, stdout, stderr io.Writer) error {
	base, err := o.base()
	if err != nil {
		return err
	}
	cfg := base.Config()
	start, err := study.StartConfig(cfg)
	if err != nil {
		return err
	}
	runs, varied, err := o.list()
	if err != nil {
		return err
	}
	if err := refuseStart(runs); err != nil {
		return err
	}
	if err := output.CheckFree(start.Output.Dir, true); err != nil {
		return err
	}
	limited, cancel := o.timeout.bound(ctx) // large files may be read
	defer cancel()
	s := &studying{next: 1}
	if s.Spec, err = study.NewSpec(limited, base, runs, study.From{File: o.runs, But: varied}, o.hash); err != nil {
		return err
	}
	if o.table == "" {
		o.table = filepath.Join(start.Output.Dir, "study.csv")
	}
	columns := study.Columns{Keys: study.Names(varied, runs), Probes: configs.ProbeNames(cfg.Output.Probes)}
	if s.table, err = study.OpenTable(o.table, columns, s.Spec, o.goOn); err != nil {
		return err
	}
	defer s.table.Close()
	scr := newScreen(stdout, stderr, o.look(cfg))
	s.screen, s.began, s.before = scr, time.Now(), len(s.table.Done)
	scr.Say(fmt.Sprintf("%s on %s; the table is %s", english.Plural(len(runs)-s.before, "run", ""),
		english.Plural(start.Run.Ranks, "rank", ""), o.table))
	var end attempt.Ended
	if s.before < len(runs) {
		p, w, err := o.stayers(ctx, start, scr)
		if err != nil {
			return err
		}
		e := &study.Engine{Where: o.where, Restarts: o.restarts, Next: s.give, Done: s.done,
			Warn: s.warn, Alone: studyAlone,
			Options: attempt.Options{Starter: w, Limit: o.timeout.Limit, Screen: scr, Stdout: scr.data}}
		s.progress = newStudyProgress(scr, s.far(s.began))
		end, err = e.Run(ctx, p)
		s.progress.close()
		if err != nil {
			return err
		}
	} else if err := tidy(start.Output, scr); err != nil {
		return err
	}
	return s.conclude(end, stdout)
}

// tidy does in output.dir what killed runs have left to do there, which a start of ranks does otherwise.
func tidy(o configs.Output, scr *screen) error {
	dir, notes, err := output.Hold(o, "study")
	if err != nil {
		return err
	}
	for _, note := range notes {
		scr.Say(note)
	}
	return dir.Close()
}

// stayers plans and returns how to start the ranks of a command that has many runs.
func (o *options) stayers(ctx context.Context, start configs.Config, scr *screen) (*plan.Plan, attempt.Starter, error) {
	limited, cancel := o.timeout.bound(ctx)
	defer cancel()
	p, err := plan.Make(limited, start, o.where, scr.Say)
	if err != nil {
		return nil, attempt.Starter{}, err
	}
	for _, text := range p.StartWarnings(os.Environ()) {
		scr.warn(text)
	}
	w, err := o.starter(p)
	return p, w, err
}

// list returns the runs of the flags, and the names of the keys of --vary.
func (o *studyOptions) list() (runs []study.Keys, varied []string, err error) {
	if o.vary == nil && o.runs == "" {
		return nil, nil, errors.New("study: --vary or --runs has to say which runs there are")
	}
	runs, varied, err = study.Vary(o.vary)
	for _, name := range varied {
		err = errors.Join(err, configs.CheckName(name, "--vary"))
	}
	if err == nil && o.runs != "" {
		var read []study.Keys
		if read, err = study.ReadRuns(o.runs); err == nil {
			runs, err = study.Product(runs, read)
		}
	}
	return runs, varied, err
}

// studying is a study that goes on.
type studying struct {
	*study.Spec
	table    *study.Table
	screen   *screen
	next     int // the next run to give
	began    time.Time
	before   int // lines that were there
	progress *studyProgress
}

// refuseStart refuses keys that belong to the start of the ranks, in any run.
func refuseStart(runs []study.Keys) error {
	seen := map[string]bool{}
	var faults []error
	for i, keys := range runs {
		for name := range keys {
			why := configs.OfStart(name)
			if name == "output.probes" {
				why = "the probes are the same for all runs, with columns in the table"
			}
			if why != "" && !seen[name] {
				seen[name] = true
				faults = append(faults, fmt.Errorf("%s (run %d): %s", name, i+1, why))
			}
		}
	}
	return errors.Join(faults...)
}

// give returns the next run that may begin. A run that cannot has its line at once.
func (s *studying) give(context.Context) (study.Job, bool, error) {
	for s.table.Done[s.next] {
		s.next++
	}
	if s.next > len(s.Runs) {
		return study.Job{}, false, nil
	}
	job, err := s.Job(s.next)
	if err != nil {
		job = study.Job{ID: s.next, Fault: err}
	}
	s.next++
	return job, true, nil
}

// warn shows a warning about a run, each at the first run that has it.
func (s *studying) warn(job study.Job, text string) {
	if s.screen.first(text) {
		s.screen.warn(fmt.Sprintf("run %d: %s", job.ID, text))
	}
}

// done adds the line of a run. A run that was interrupted has none, and is done again by --continue.
func (s *studying) done(j study.Job, r study.Result) error {
	if r.Report != nil && r.Report.Verdict == configs.Interrupted {
		return nil
	}
	if err := s.table.Add(s.Line(j, r)); err != nil {
		return err
	}
	s.progress.tell(s.far(time.Now()))
	return nil
}

// far returns the progress of the study in words.
func (s *studying) far(now time.Time) studyAt {
	at := studyAt{lines: len(s.table.Done), all: len(s.Runs), amiss: s.table.Amiss()}
	if done, took := at.lines-s.before, now.Sub(s.began); done > 0 && took > 0 {
		at.rate = float64(done) / took.Seconds()
		at.left = time.Duration(float64(at.all-at.lines) / at.rate * float64(time.Second))
	}
	return at
}

// conclude prints the summary, and returns the exit code as an error: that of a run alone, of the worst one.
func (s *studying) conclude(end attempt.Ended, stdout io.Writer) error {
	lines, count := len(s.table.Done), s.table.Count
	took := time.Since(s.began)
	_, err := fmt.Fprintf(stdout, "%d of %d runs: %s (%v)\n%s", lines, len(s.Runs), s.table.Summary(),
		took.Round(time.Millisecond), s.table.Reasons())
	without := len(s.Runs) - lines + count[study.Refused] + count[study.Failed]
	switch {
	case err != nil:
		return err
	case without == 0 && count[string(configs.Missed)] > 0:
		return launch.ExitError{Code: launch.ExitMissed}
	case without == 0:
		return nil
	case end.Err != nil && lines < len(s.Runs):
		s.screen.fail(end.Err.Error())
	}
	s.screen.fail(fmt.Sprintf("%s no result; --continue does %s", english.Plural(without, "run has", "runs have"),
		english.PluralWord(without, "it", "them")))
	if code := end.ExitCode(); lines < len(s.Runs) && code != launch.ExitOK && code != launch.ExitMissed {
		return launch.ExitError{Code: code}
	}
	return launch.ExitError{Code: launch.ExitFailed}
}

// studyAt is the progress of a study.
type studyAt struct {
	lines, all int
	rate       float64 // runs a second; 0 if it is not known
	left       time.Duration
	amiss      string // how many runs have not done what they were to do; "" for none
}

// share returns the share of the runs that have a line.
func (a studyAt) share() float64 { return float64(a.lines) / float64(a.all) }

// text describes the progress in at most width columns. If not all parts fit, it drops first what went amiss, then the
// speed.
func (a studyAt) text(width int) string {
	count, speed, left := fmt.Sprintf("%d of %d runs", a.lines, a.all), "", ""
	if a.rate > 0 {
		speed = fmt.Sprintf("%.3g runs/s", a.rate)
	}
	if a.left > 0 {
		left = "about " + roster.Coarse(a.left) + " left"
	}
	return fitting(width, [][]string{{count, speed, left, a.amiss}, {count, speed, left}, {count, left}, {count}})
}

// studyProgress shows the progress of a study: as a bar on a terminal, else in lines.
type studyProgress struct {
	screen *screen
	at     atomic.Pointer[studyAt]
	bar    *bar      // nil without a terminal
	said   time.Time // of the last line
}

func newStudyProgress(s *screen, at studyAt) *studyProgress {
	p := &studyProgress{screen: s, said: time.Now()}
	p.at.Store(&at)
	if s.barred() {
		p.bar = newBar(s.stderr, func() string { return percentOf(p.at.Load().share()) },
			func(width int) string { return p.at.Load().text(width) })
		s.show(p.bar)
	}
	return p
}

// tell shows where the study is now.
func (p *studyProgress) tell(at studyAt) {
	p.at.Store(&at)
	switch now := time.Now(); {
	case p.bar != nil:
		p.bar.fill(at.share())
	case !p.screen.quiet && now.Sub(p.said) >= lineInterval:
		p.said = now
		p.screen.aside(at.text(1 << 10))
	}
}

func (p *studyProgress) close() {
	if p.bar != nil {
		p.screen.hide()
	}
}
