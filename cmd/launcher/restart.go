package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"jacobi/configs"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

// defineRestart defines the flags that say from which state a run starts.
func (o *options) defineRestart(f *pflag.FlagSet) {
	f.BoolVar(&o.restart, "restart", false, "go on from the newest checkpoint in checkpoint.dir or "+
		"checkpoint.nats")
	f.StringVar(&o.resume, "resume", "", "go on from the checkpoint in `DIR`, or from the newest of several there")
	f.IntVar(&o.restarts, "max-restarts", 0, "start the run again up to `N` times when a rank or a host dies, from "+
		"its newest checkpoint")
}

const aboutRestart = "--restart goes on from where checkpoints are written"

// resumed returns cfg with the choice of --restart or --resume.
func (o *options) resumed(cfg configs.Config) (configs.Config, error) {
	switch {
	case o.restart && o.resume != "":
		return cfg, errors.New("--restart and --resume: only one of them is allowed; " + aboutRestart)
	case o.resume != "":
		cfg.Checkpoint.Resume = o.resume
	case o.restart && cfg.Checkpoint.Place() == "":
		return cfg, errors.New("--restart: checkpoint.dir or checkpoint.nats has to say where the checkpoints are")
	case o.restart:
		cfg.Checkpoint.Resume = cfg.Checkpoint.Place()
	}
	return cfg, nil
}

// warnings returns the warnings before a run: those of its plan, and one if restarts have nothing to go on from.
func (o *options) warnings(ctx context.Context, p *plan.Plan) []string {
	list := append(p.StartWarnings(os.Environ()), p.JobWarnings(ctx)...)
	if o.restarts > 0 && !p.Config.Checkpoint.On() {
		list = append(list, fmt.Sprintf("--max-restarts %d: no checkpoints are saved, and so a restart begins again "+
			"with the initial field; checkpoint.every and checkpoint.dir, or checkpoint.nats, save them", o.restarts))
	}
	return list
}

// restartHint tells the user of a run that failed or was stopped after it had saved sweep how to resume it; step is
// configs.Solver.Step. place is where the checkpoints are, and file is the run file.
func restartHint(step string, sweep int, place, file string) string {
	text := fmt.Sprintf("--restart goes on after %s %d, from %s", step, sweep, place)
	if file == configs.StandardInput { // it cannot be read a second time
		return text
	}
	return text + ": " + unbroken(restartCommand(os.Args))
}

// plainWord matches a word that needs no quotes in a shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// shellWord returns a word as a shell reads it.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return launch.ShellQuote(word)
}

// restartCommand returns the shell command that restarts the run of args from its newest checkpoint.
func restartCommand(args []string) string {
	var words []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--restart" || strings.HasPrefix(a, "--restart=") || strings.HasPrefix(a, "--resume="):
		case a == "--resume":
			i++ // its value
		default:
			words = append(words, shellWord(a))
		}
	}
	return strings.Join(append(words, "--restart"), " ")
}
