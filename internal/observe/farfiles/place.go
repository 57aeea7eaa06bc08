package farfiles

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/output"
)

// Place is the directory of a run, which another process holds. It implements output.Place.
type Place struct {
	ctx   context.Context // of the rank's part in the run; ends all waits
	conn  Conn
	runID string
	limit time.Duration
	first time.Duration // firstAsk, except in tests
	host  string
	probe string
	loose bool   // files of a study
	local string // path of the directory on this machine; "" if this machine does not see it
}

// Find returns the directory that a run's server holds, once the server has answered. ctx ends all later waits for the
// server; limit bounds each of them.
func Find(ctx context.Context, conn Conn, runID string, limit time.Duration) (*Place, error) {
	return find(&Place{ctx: ctx, conn: conn, runID: runID, limit: limit, first: firstAsk})
}

func find(p *Place) (*Place, error) {
	a, err := p.ask(request{Op: opLook})
	if err != nil {
		return nil, err
	}
	p.host, p.probe, p.loose = a.Host, a.Probe, a.Loose
	return p, nil
}

// Host returns the host of the directory.
func (p *Place) Host() string { return p.host }

// IsLoose reports whether the directory is that of a study; see output.Held.Loosen.
func (p *Place) IsLoose() bool { return p.loose }

// See reports whether dir, on this machine, is the same directory: it holds the server's probe, whose name cannot be
// guessed. If so, files are written to dir and not over NATS.
func (p *Place) See(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, p.probe)); err != nil {
		return false
	}
	p.local = dir
	return true
}

// Create implements output.Place.
func (p *Place) Create(name, runID string, size int64) (output.Partial, error) {
	if p.local != "" {
		f, err := output.Dir(p.local).Create(name, runID, size)
		if err == nil && p.loose {
			output.Loose(f)
		}
		return f, err
	}
	file, err := output.NewPartialName(name, runID)
	if err != nil {
		return nil, err
	}
	if _, err := p.ask(request{Op: opCreate, File: file, Size: size}); err != nil {
		return nil, err
	}
	return &partial{place: p, file: file}, nil
}

// Commit implements output.Place. The process that holds the directory commits the files, so that it knows which are
// there.
func (p *Place) Commit(files []string) error {
	_, err := p.ask(request{Op: opCommit, Files: files})
	return err
}

// PutInSeries implements output.Place. The process that holds the directory knows the series from its own
// configuration.
func (p *Place) PutInSeries(_ configs.Output, file string) error {
	_, err := p.ask(request{Op: opPut, File: file})
	return err
}

// TrimSeries implements output.Place.
func (p *Place) TrimSeries(_ configs.Output, sweeps int) error {
	_, err := p.ask(request{Op: opTrim, Sweeps: sweeps})
	return err
}

// GrowProbes implements output.Place.
func (p *Place) GrowProbes(runID string, before int) (output.Partial, int64, error) {
	file, err := output.NewPartialName(configs.ProbesFile, runID)
	if err != nil {
		return nil, 0, err
	}
	a, err := p.ask(request{Op: opGrow, File: file, Sweeps: before})
	return &partial{place: p, file: file}, a.Size, err
}

// Open returns the partial file that another rank has created.
func (p *Place) Open(file string) output.Partial { return &partial{place: p, file: file} }

// ask repeats a request until an answer comes or p.limit is over.
func (p *Place) ask(r request) (answer, error) {
	fail := func(err error) (answer, error) {
		what := cmp.Or(r.File, strings.Join(r.Files, ", "))
		if name, err := output.NameOfPartial(r.File, p.runID); err == nil && r.Op == opPut {
			what = name
		}
		return answer{}, fmt.Errorf("%s %s of output.dir over NATS: %w", r.Op, what, err)
	}
	b, err := r.encode()
	if err != nil {
		return fail(err)
	}
	ctx, cancel := awake.WithTimeout(p.ctx, p.limit)
	defer cancel()
	var a answer
	err = wire.Ask(ctx, p.conn, Subject(p.runID), b, wire.Pace{First: p.first, Last: lastAsk},
		func(m pubsub.Message) bool {
			a = answer{}
			return json.Unmarshal(m.Data, &a) == nil
		})
	switch {
	case err == nil && a.Error == "":
		return a, nil
	case err == nil && a.Full:
		return fail(fmt.Errorf("%w: %s", output.ErrNoSpace, a.Error))
	case err == nil:
		return fail(errors.New(a.Error))
	case p.ctx.Err() != nil:
		return fail(context.Cause(p.ctx))
	case ctx.Err() != nil:
		return fail(fmt.Errorf("no answer within %v", p.limit))
	}
	return fail(err)
}

// partial is a file in the place. One goroutine calls its methods.
type partial struct {
	place  *Place
	file   string
	end    int64 // end of what Write has written
	closed bool
}

func (f *partial) File() string { return f.file }

func (f *partial) Write(b []byte) (int, error) {
	n, err := f.WriteAt(b, f.end)
	f.end += int64(n)
	return n, err
}

func (f *partial) WriteAt(b []byte, at int64) (int, error) {
	size := min(pieceBytes, int(f.place.conn.MaxPayload())-headBytes)
	if size <= 0 {
		return 0, fmt.Errorf("the server's max_payload of %d is too small", f.place.conn.MaxPayload())
	}
	for n := 0; n < len(b); n += size {
		piece := b[n:min(n+size, len(b))]
		if _, err := f.place.ask(request{Op: opWrite, File: f.file, Offset: at + int64(n), data: piece}); err != nil {
			return n, err
		}
	}
	return len(b), nil
}

func (f *partial) Sync() error { return f.do(opSync) }

// Close leaves the file open at the server, for other ranks.
func (f *partial) Close() error {
	f.closed = true
	return nil
}

// Abort removes the file, unless it was closed. After the end of ctx it leaves that to the process that holds the
// directory: the server may not be reachable any more.
func (f *partial) Abort() error {
	if f.closed || f.place.ctx.Err() != nil {
		return nil
	}
	f.closed = true
	return f.do(opAbort)
}

func (f *partial) do(op string) error {
	_, err := f.place.ask(request{Op: op, File: f.file})
	return err
}
