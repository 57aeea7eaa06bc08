// Command placement measures exchanges of rows between two processes over NATS, with servers in different places:
//
//	one      one server, on a third machine: two hops
//	first    one server, on the first rank's machine: one hop each way, and one through loopback
//	each     a server in each rank, from which its neighbour takes the rows as a client: one hop
//	routes   a server on each machine; a cluster joined by routes
//	leaf     a server on each machine; the second one is a leaf node of the first
//	direct   no server: TCP from rank to rank, as halo.transport: direct has it
//
// It prints the median time of an exchange in microseconds, from Send until the neighbour's rows are there, both ways
// at once, in several rounds in which the placements take turns. Frames are not sealed or packed.
//
//	placement [-net PREFIX] [-kib 8,128,1024] [-exchanges 200] [-rounds 3] [PLACEMENT...]
//
// Without -net all processes share this machine's loopback. With it machine i is the network namespace PREFIXi with
// address 10.123.45.(10+i), and the third one PREFIX0 with 10.123.45.1: see ../../placement.sh.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

var placements = []string{"one", "first", "each", "routes", "leaf", "direct"}

func main() {
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		if err := child(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "placement:", err)
			os.Exit(1)
		}
		return
	}
	var b bench
	flag.StringVar(&b.net, "net", "", "prefix of the network namespaces; empty: loopback")
	sizes := flag.String("kib", "8,128,1024", "KiB of rows each way")
	flag.IntVar(&b.exchanges, "exchanges", 200, "exchanges of a measurement")
	flag.IntVar(&b.rounds, "rounds", 3, "measurements of each placement and size")
	flag.Parse()
	err := b.parse(*sizes, flag.Args())
	if err == nil {
		err = b.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "placement:", err)
		os.Exit(1)
	}
}

// bench is what was asked for.
type bench struct {
	net               string
	kib               []int
	exchanges, rounds int
	placements        []string
}

func (b *bench) parse(sizes string, names []string) error {
	for s := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 1<<16 {
			return fmt.Errorf("-kib %q: numbers from 1 to %d are allowed, separated by commas", sizes, 1<<16)
		}
		b.kib = append(b.kib, n)
	}
	if b.exchanges < 1 || b.rounds < 1 {
		return fmt.Errorf("-exchanges %d -rounds %d: at least 1 is allowed", b.exchanges, b.rounds)
	}
	for _, name := range names {
		if !slices.Contains(placements, name) {
			return fmt.Errorf("placement %q: allowed are %s", name, strings.Join(placements, ", "))
		}
	}
	if b.placements = names; len(names) == 0 {
		b.placements = placements
	}
	return nil
}

// run prints a line for each placement, with a cell for each size and in it a time for each round.
func (b *bench) run() error {
	cells := map[string][]string{}
	for _, kib := range b.kib {
		times := map[string][]string{}
		for range b.rounds {
			for _, placement := range b.placements {
				us, err := b.measure(placement, kib)
				if err != nil {
					return fmt.Errorf("%s, %d KiB: %w", placement, kib, err)
				}
				times[placement] = append(times[placement], fmt.Sprintf("%.0f", us))
			}
		}
		for placement, list := range times {
			cells[placement] = append(cells[placement], strings.Join(list, ", "))
		}
	}
	fmt.Print("| placement |")
	for _, kib := range b.kib {
		fmt.Printf(" %d KiB |", kib)
	}
	fmt.Printf("\n|%s\n", strings.Repeat("---|", 1+len(b.kib)))
	for _, placement := range b.placements {
		fmt.Printf("| %s | %s |\n", placement, strings.Join(cells[placement], " | "))
	}
	return nil
}

// measure starts the processes of a placement, has the ranks exchange rows, and ends the processes.
func (b *bench) measure(placement string, kib int) (us float64, err error) {
	var all []*process
	defer func() {
		for _, p := range slices.Backward(all) {
			p.end()
		}
	}()
	start := func(machine int, o order) (*process, answer, error) {
		p, err := b.start(machine)
		if err != nil {
			return nil, answer{}, err
		}
		all = append(all, p)
		o.Host = b.host(machine)
		a, err := p.ask(o)
		return p, a, err
	}
	opens := [2]order{{KiB: kib}, {KiB: kib, Second: true}}
	if err := b.serve(placement, start, &opens); err != nil {
		return 0, err
	}
	first, a, err := start(1, opens[0])
	if err != nil {
		return 0, err
	}
	opens[1].Offer = a.Offer
	if placement == "each" {
		opens[1].Theirs = a.URL
	}
	second, a, err := start(2, opens[1])
	if err != nil {
		return 0, err
	}
	if placement == "each" {
		if _, err := first.ask(order{Theirs: a.URL}); err != nil {
			return 0, err
		}
	}
	if err := second.tell(order{Exchanges: b.exchanges}); err != nil {
		return 0, err
	}
	if a, err = first.ask(order{Exchanges: b.exchanges}); err != nil {
		return 0, err
	}
	_, err = second.answer()
	return a.Median, err
}

// serve starts the servers of a placement and tells the ranks theirs.
func (b *bench) serve(placement string, start func(int, order) (*process, answer, error), ranks *[2]order) error {
	two := func(first, second func(a answer) order) error {
		_, a, err := start(1, first(answer{}))
		if err != nil {
			return err
		}
		ranks[0].URL = a.URL
		_, a, err = start(2, second(a))
		ranks[1].URL = a.URL
		return err
	}
	switch placement {
	case "each":
		ranks[0].Own, ranks[1].Own = true, true
		return nil
	case "routes":
		server := func(a answer) order { return order{Serve: true, Cluster: true, Route: a.Cluster} }
		return two(server, server)
	case "leaf":
		return two(func(answer) order { return order{Serve: true, Hub: true} },
			func(a answer) order { return order{Serve: true, Leaf: a.Leaf} })
	}
	machine := 0
	if placement == "first" {
		machine = 1
	}
	_, a, err := start(machine, order{Serve: true})
	ranks[0].URL, ranks[1].URL = a.URL, a.URL
	ranks[0].Direct = placement == "direct"
	return err
}

// host returns the address of a machine.
func (b *bench) host(machine int) string {
	switch {
	case b.net == "":
		return "127.0.0.1"
	case machine == 0:
		return "10.123.45.1"
	}
	return fmt.Sprintf("10.123.45.%d", 10+machine)
}

// process is a child on one of the machines.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts a child, which awaits orders.
func (b *bench) start(machine int) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	words := []string{self, childArgument}
	if b.net != "" {
		words = append([]string{"ip", "netns", "exec", fmt.Sprintf("%s%d", b.net, machine)}, words...)
	}
	p := &process{cmd: exec.Command(words[0], words[1:]...)}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// ask gives the child an order and returns its answer.
func (p *process) ask(o order) (answer, error) {
	if err := p.tell(o); err != nil {
		return answer{}, err
	}
	return p.answer()
}

func (p *process) tell(o order) error { return json.NewEncoder(p.in).Encode(o) }

func (p *process) answer() (a answer, err error) {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("a process ended early: %w", err)
	}
	return a, json.Unmarshal(line, &a)
}

// end ends the child and waits for that.
func (p *process) end() {
	_ = p.in.Close()
	_ = p.cmd.Wait() // what failed was said by the child
}
