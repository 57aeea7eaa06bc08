package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"jacobi/internal/base/show"
	"jacobi/internal/base/style"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
	"jacobi/internal/tools/doctor"
	"jacobi/internal/tools/examine"
)

const aboutDoctor = `doctor tests the start of a run: write doctor after launcher in the command line of the run. It
starts the ranks on their places as the run would. They join, choose their GPUs, connect to each neighbour, allocate
their memory, load the field, reserve the outputs, report what they found, and end before the first sweep. doctor then
removes everything that they made.

Exit codes: 0 the run would start, with or without warnings; 1 it would not, and each fault is printed with its remedy.`

func newDoctorCommand(stdout, stderr io.Writer) *cobra.Command {
	var o options
	var asJSON bool
	cmd := o.command(&cobra.Command{
		Use:   "doctor [-np N] [--config FILE] [--set key=value]...",
		Short: "Test whether a run would start, and what each rank would use",
		Long:  aboutDoctor,
	}, func(ctx context.Context) error { return examineRun(ctx, o, asJSON, stdout, stderr) })
	cmd.Args = arguments()
	o.define(cmd.Flags())
	o.defineRestart(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the diagnosis as JSON")
	return cmd
}

// examineRun tests the start of a run and prints the diagnosis.
func examineRun(ctx context.Context, o options, asJSON bool, stdout, stderr io.Writer) error {
	d, err := o.diagnose(ctx, stderr)
	if err != nil {
		return err
	}
	write := func() error { return printDiagnosis(stdout, d) }
	if asJSON {
		write = func() error { return show.JSON(stdout, d) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("print the diagnosis: %w", err)
	}
	if !d.Starts {
		return launch.ExitError{Code: launch.ExitFailed}
	}
	return nil
}

// diagnose tests the start of the run. It shows the lines of the launcher and the ranks on stderr with --verbose only,
// because the diagnosis repeats their faults.
func (o *options) diagnose(ctx context.Context, stderr io.Writer) (doctor.Diagnosis, error) {
	cfg, err := o.load()
	if err == nil {
		cfg, err = o.resumed(cfg)
	}
	if err != nil {
		return doctor.Refused(err, os.Environ()), nil
	}
	if !o.verbose {
		stderr = io.Discard
	}
	return doctor.Examine(ctx, doctor.Run{
		Config:  attempt.WithMethod(ctx, cfg),
		Where:   o.where,
		Environ: os.Environ(), // after load, which sets the variables of -x
		Starter: o.starter,
		Limit:   o.timeout.Limit,
		Screen:  newScreen(stderr, stderr, o.look(cfg)),
	})
}

// doctorColumns is the width of a diagnosis; a narrower terminal reduces it.
const doctorColumns = 100

// page is text whose lines have at most columns columns.
type page struct {
	bytes.Buffer
	columns int
}

// printDiagnosis writes the diagnosis as text.
func printDiagnosis(w io.Writer, d doctor.Diagnosis) error {
	look := style.Of(w)
	b := page{columns: doctorColumns}
	if look.Width > 0 {
		b.columns = min(look.Width, doctorColumns)
	}
	for _, text := range []string{d.Run, d.Faster} {
		if text != "" {
			b.paragraph("", text)
		}
	}
	for _, n := range d.Nodes {
		b.node(n)
	}
	for _, r := range d.Ranks {
		if rep := r.Report; rep != nil {
			text := fmt.Sprintf("%s on %s, %s", rep.Device, rep.Host, bytesText(rep.MemoryBytes))
			if rep.GPU != nil {
				text += fmt.Sprintf(", %s (%s)", rep.GPU.UUID, rep.GPU.Why)
			}
			if rep.Output != "" {
				text += ", output: " + rep.Output
			}
			b.paragraph(fmt.Sprintf("rank %d: ", r.Rank), text)
		}
	}
	for _, l := range d.Links() {
		b.paragraph(fmt.Sprintf("ranks %d and %d: ", l.Ranks[0], l.Ranks[1]), l.Transport+": "+l.Why+l.Access)
	}
	places := []*examine.Place{d.Output}
	for _, r := range d.Ranks {
		places = append(places, r.Checkpoints)
	}
	for _, p := range places {
		if p != nil {
			b.paragraph(p.Key+" "+p.Dir+": ", fmt.Sprintf("on %s, %s needed, %s available", p.Host,
				bytesText(p.Needed), bytesText(p.Available)))
		}
	}
	for _, list := range []struct {
		what   string
		colour func(string) string
		all    []doctor.Finding
	}{{"warning: ", look.Yellow, d.Warnings}, {"fault: ", look.Red, d.Faults}} {
		for _, f := range list.all {
			b.coloured(list.what, f.What, list.colour)
			b.paragraph("  to do: ", f.Do)
		}
	}
	verdict := look.Green("The run would start.")
	if !d.Starts {
		verdict = look.Red("The run would not start.")
	}
	fmt.Fprintln(&b, verdict)
	_, err := w.Write(b.Bytes())
	return err
}

func (b *page) node(n doctor.Node) {
	roundTrip := time.Duration(n.NATSRoundTrip * float64(time.Second))
	b.paragraph(n.Host+": ", strings.Join([]string{
		fmt.Sprintf("%s (%s), version %s", roster.FormatRanks(n.Ranks), n.Reached, n.Version),
		fmt.Sprintf("%d cores for %d threads", n.Cores, n.Threads),
		fmt.Sprintf("memory %s needed, %s available (%s)", bytesText(n.Needed), bytesText(n.MemoryBytes),
			n.MemoryBound),
		fmt.Sprintf("/dev/shm %s available", bytesText(n.ShmBytes)),
		"locked memory " + limitText(n.LockedBytes, bytesText),
		fmt.Sprintf("%d files open in a rank, limit %s", n.Files,
			limitText(n.MostFiles, func(n int64) string { return fmt.Sprint(n) })),
		fmt.Sprintf("NATS round trip %v", roundTrip.Round(time.Microsecond)),
	}, "; "))
	if n.Clock != nil {
		b.paragraph(strings.Repeat(" ", utf8.RuneCountInString(n.Host)+2), n.Clock.String())
	}
}

func limitText(n int64, text func(int64) string) string {
	if n == examine.Unlimited {
		return "unlimited"
	}
	return text(n)
}

// paragraph writes head and text in lines of the page's width. A word that is longer than a line gets its own line.
// Further lines are indented.
func (b *page) paragraph(head, text string) {
	b.coloured(head, text, func(head string) string { return head })
}

// coloured is paragraph with a coloured head.
func (b *page) coloured(head, text string, colour func(string) string) {
	head = show.Lines(head) // may hold the name of a host
	lines := style.Paragraph(head, show.Lines(text), min(utf8.RuneCountInString(head), 16, b.columns/4), b.columns)
	b.WriteString(colour(head) + lines[len(head):] + "\n")
}
