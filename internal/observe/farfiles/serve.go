package farfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/output"
)

// Conn is the part of a connection to NATS that this package needs.
type Conn interface {
	pubsub.Publisher
	wire.Asker
	Subscribe(subject string, handle func(pubsub.Message)) (pubsub.Subscription, error)
	MaxPayload() int64
}

// Options are the arguments of Serve.
type Options struct {
	Conn   Conn
	RunID  string
	Dir    *output.Held
	Output configs.Output // names the files that ranks may write
	Log    *zap.Logger
}

// Subject returns the subject on which the files of a run are served.
func Subject(runID string) string { return "jacobi." + runID + ".files" }

// server serves one run.
type server struct {
	Options
	host  string
	probe output.Partial // a rank that finds it sees the directory

	mu    sync.Mutex
	open  map[string]output.Partial // by name; nil for files that were committed or removed
	grown int64                     // bytes of the file of the probes when it was created
	close bool
}

// Serve lets the ranks of a run write their files into o.Dir until stop is called. After stop returns, it changes
// nothing there. o.Dir removes incomplete files.
func Serve(o Options) (stop func(), err error) {
	fail := func(err error) (func(), error) { return nil, fmt.Errorf("serve output.dir %q: %w", o.Dir.Dir, err) }
	s := &server{Options: o, open: map[string]output.Partial{}}
	if s.host, err = os.Hostname(); err != nil {
		return fail(err)
	}
	if s.probe, err = o.Dir.Create("probe", o.RunID, 0); err != nil {
		return fail(err)
	}
	sub, err := o.Conn.Subscribe(Subject(o.RunID), s.receive) // ranks that ask before the server has it ask again
	if err != nil {
		return fail(errors.Join(err, s.probe.Abort()))
	}
	return func() {
		_ = sub.Unsubscribe() // fails only on a closed connection
		s.end()
	}, nil
}

func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close = true
	for _, p := range s.open {
		if p != nil {
			_ = p.Close() // files that were not committed are discarded
		}
	}
	if err := s.probe.Abort(); err != nil {
		s.Log.Debug("remove the probe of output.dir", zap.Error(err))
	}
}

func (s *server) receive(m pubsub.Message) {
	var a answer
	r, err := decode(m.Data)
	if err == nil {
		a, err = s.do(r)
	}
	if err != nil {
		a.Error, a.Full = err.Error(), output.IsFull(err)
	}
	if b, err := json.Marshal(a); err == nil && m.Reply != "" {
		_ = s.Conn.Publish(m.Reply, b) // a rank that misses it asks again
	}
}

func (s *server) do(r request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.close {
		return answer{}, errors.New("the run has ended")
	}
	if r.Op == opLook {
		return answer{Probe: s.probe.File(), Host: s.host, Loose: s.Dir.IsLoose()}, nil
	}
	switch r.Op {
	case opCommit:
		return answer{}, s.commit(r.Files)
	case opTrim:
		return answer{}, s.Dir.TrimSeries(s.Output, r.Sweeps)
	}
	if err := s.check(r.File); err != nil {
		return answer{}, err
	}
	var err error
	p, known := s.open[r.File]
	if known && p == nil { // a repetition: the first answer was lost
		return answer{}, nil
	}
	if r.Op == opCreate && known {
		return answer{}, nil
	}
	switch {
	case r.Op == opPut:
		return answer{}, s.put(r.File)
	case r.Op == opGrow:
		return s.grow(r, known)
	}
	if r.Op != opCreate && !known { // created by a rank that sees the directory
		if p, err = s.Dir.Reopen(r.File); err != nil {
			return answer{}, err
		}
		s.open[r.File] = p
	}
	switch r.Op {
	case opCreate:
		if p, err = s.Dir.CreateAs(r.File, r.Size); err == nil {
			s.open[r.File] = p
			if s.Dir.IsLoose() {
				output.Loose(p)
			}
		}
	case opWrite:
		if r.Offset < 0 || r.Offset > math.MaxInt64-int64(len(r.data)) {
			return answer{}, fmt.Errorf("offset %d", r.Offset)
		}
		_, err = p.WriteAt(r.data, r.Offset)
	case opSync:
		err = p.Sync()
	case opAbort:
		if err = p.Abort(); err == nil {
			s.open[r.File] = nil
		}
	default:
		err = fmt.Errorf("unknown operation %q", r.Op)
	}
	return answer{}, err
}

// check returns an error unless file is a partial file of this run.
func (s *server) check(file string) error {
	name, err := output.NameOfPartial(file, s.RunID)
	_, numbered := s.Output.InSeries(name)
	ofStudy := s.Dir.IsLoose() && output.IsLooseName(name)
	if err == nil && !numbered && !ofStudy && !slices.Contains(s.Output.Names(), name) {
		err = fmt.Errorf("%s is no file of this run", name)
	}
	return err
}

// put gives a file of the series its final name.
func (s *server) put(file string) error {
	if p := s.open[file]; p != nil {
		if err := p.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			return err
		}
	}
	if err := s.Dir.PutInSeries(s.Output, file); err != nil {
		return err
	}
	s.open[file] = nil
	return nil
}

// grow creates the file of the probes, unless it is there already.
func (s *server) grow(r request, there bool) (answer, error) {
	if there {
		return answer{Size: s.grown}, nil
	}
	if name, err := output.NameOfPartial(r.File, s.RunID); err != nil || name != configs.ProbesFile {
		return answer{}, fmt.Errorf("%s is not the file of the probes", name)
	}
	p, n, err := s.Dir.GrowProbesAs(r.File, r.Sweeps)
	if err != nil {
		return answer{}, err
	}
	s.open[r.File], s.grown = p, n
	return answer{Size: n}, nil
}

// commit gives files their final names. Files that came over NATS are open here.
func (s *server) commit(files []string) error {
	for _, file := range files {
		if err := s.check(file); err != nil {
			return err
		}
		if p := s.open[file]; p != nil {
			if err := errors.Join(p.Sync(), p.Close()); err != nil {
				return err
			}
			s.open[file] = nil
		}
	}
	err := s.Dir.Commit(files)
	if err == nil && s.Dir.IsLoose() { // a repeated request finds the files renamed
		for _, file := range files {
			delete(s.open, file)
		}
	}
	return err
}
