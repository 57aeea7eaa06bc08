package farfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/observe/output"
)

// Subject returns the subject on which the files of a run are served.
func Subject(runID string) string { return "jacobi." + runID + ".files" }

// server serves one run.
type server struct {
	conn pubsub.Conn
	dir  *output.Held
	host string

	mu    sync.Mutex
	open  map[string]output.File // by name, until they are in place or removed
	grown int64                  // bytes of the file of the probes when it was created
	ended bool
}

// Serve lets the ranks of a run write their files into dir until stop is called. After stop returns, it changes nothing
// there. dir removes incomplete files.
func Serve(conn pubsub.Conn, runID string, dir *output.Held) (stop func(), err error) {
	fail := func(err error) (func(), error) { return nil, fmt.Errorf("serve output.dir: %w", err) }
	s := &server{conn: conn, dir: dir, open: map[string]output.File{}}
	if s.host, err = os.Hostname(); err != nil {
		return fail(err)
	}
	sub, err := conn.Subscribe(Subject(runID), s.receive) // ranks retry requests that come before the server has it
	if err != nil {
		return fail(err)
	}
	return func() {
		_ = sub.Unsubscribe() // fails only on a closed connection
		s.end()
	}, nil
}

func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, f := range s.open {
		_ = f.Close() // what is not in place is discarded
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
		_ = s.conn.Publish(m.Reply, b) // a rank that misses it retries
	}
}

// do does what a rank asks for. A rank repeats a request until it has an answer, and asks for nothing else before. So a
// file that is open has been created, and one that is not there has been removed.
func (s *server) do(r request) (a answer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return a, errors.New("the run has ended")
	}
	switch r.Op {
	case opLook:
		a = answer{Host: s.host, Stage: s.dir.Stage(), OfStudy: s.dir.OfStudy}
	case opCreate:
		if s.open[r.File] == nil {
			var f output.File
			if f, err = s.dir.Create(r.File, r.Size); err == nil {
				s.open[r.File] = f
			}
		}
	case opWrite:
		err = s.write(r)
	case opSync:
		err = s.complete(r.File)
	case opRemove:
		if f := s.open[r.File]; f != nil {
			delete(s.open, r.File)
			_ = f.Close() // nobody wants its bytes
		}
		err = s.dir.Remove(r.File)
	case opPut:
		if err = s.complete(r.File); err == nil {
			err = s.dir.Put(r.File)
		}
	case opCommit:
		if err = s.complete(r.Files...); err == nil {
			err = s.dir.Commit(r.Files)
		}
	case opTrim:
		err = s.dir.TrimSeries(r.Sweeps)
	case opGrow:
		if s.open[configs.ProbesFile] == nil {
			var f output.File
			if f, s.grown, err = s.dir.GrowProbes(r.Sweeps); err == nil {
				s.open[configs.ProbesFile] = f
			}
		}
		a.Size = s.grown
	default:
		err = fmt.Errorf("unknown operation %q", r.Op)
	}
	return a, err
}

// write writes a piece of a file, which was created by this server, by the process that holds the directory, or before
// the last sync.
func (s *server) write(r request) (err error) {
	if r.Offset < 0 || r.Offset > math.MaxInt64-int64(len(r.data)) {
		return fmt.Errorf("offset %d", r.Offset)
	}
	f := s.open[r.File]
	if f == nil {
		if f, _, err = s.dir.Open(r.File); err != nil {
			return err
		}
		s.open[r.File] = f
	}
	_, err = f.WriteAt(r.data, r.Offset)
	return err
}

// complete makes files durable and closes them. Those that are not open are so already.
func (s *server) complete(names ...string) error {
	for _, name := range names {
		f := s.open[name]
		if f == nil {
			continue
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
		delete(s.open, name)
	}
	return nil
}
