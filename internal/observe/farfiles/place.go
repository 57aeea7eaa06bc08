// Package farfiles lets ranks write the files of a run into a directory of another machine, over NATS: into the
// launcher's, if the nodes share no file system with it. A message holds one piece of a file. Each piece is answered,
// and may be sent again. Only one piece a rank is in memory.
package farfiles

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/output"
)

const (
	// pieceBytes is the maximum size of a piece. NATS has its best throughput with 256 to 512 KiB.
	pieceBytes = 512 << 10
	// headBytes is the maximum size of the rest of a message.
	headBytes = 2 << 10
	// The first and the longest time from one attempt of a request to the next: a disk may be slow.
	firstAsk = 250 * time.Millisecond
	lastAsk  = 10 * time.Second
)

// The operations: look asks for the directory, and sync and write are for a file; the others are methods of
// output.Place.
const (
	opLook   = "look"
	opCreate = "create"
	opWrite  = "write"
	opSync   = "sync"
	opRemove = "remove"
	opPut    = "put"
	opCommit = "commit"
	opTrim   = "trim"
	opGrow   = "grow"
)

// request is one operation that a rank asks for. A repetition changes nothing: opWrite carries its offset.
type request struct {
	Op     string   `json:"op"`
	File   string   `json:"file,omitempty"`
	Files  []string `json:"files,omitempty"`  // of opCommit
	Size   int64    `json:"size,omitempty"`   // of opCreate
	Sweeps int      `json:"sweeps,omitempty"` // of opTrim and opGrow
	Offset int64    `json:"offset,omitempty"`
	data   []byte
}

// answer is the result of a request.
type answer struct {
	Error   string `json:"error,omitempty"`
	Full    bool   `json:"full,omitempty"`     // Error is that the disk is full
	Host    string `json:"host,omitempty"`     // of opLook: that of the directory
	Stage   string `json:"stage,omitempty"`    // of opLook: where in the directory the files are
	OfStudy bool   `json:"of_study,omitempty"` // of opLook: see output.Held.OfStudy
	Size    int64  `json:"size,omitempty"`     // of opGrow
}

// encode returns the length of the request's JSON (u32, little-endian), the JSON and the data.
func (r request) encode() ([]byte, error) {
	head, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, 4+len(head)+len(r.data))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(head)))
	return append(append(b, head...), r.data...), nil
}

func decode(b []byte) (r request, err error) {
	if len(b) < 4 || int64(binary.LittleEndian.Uint32(b)) > int64(len(b)-4) {
		return r, errors.New("not a request")
	}
	n := 4 + int(binary.LittleEndian.Uint32(b))
	if err := json.Unmarshal(b[4:n], &r); err != nil {
		return r, err
	}
	r.data = b[n:]
	return r, nil
}

// Place is output.dir of a run, which another process holds. It implements output.Place. That process creates the files
// and puts them in place. A rank that sees the directory writes its bytes into the files, any other one sends them.
type Place struct {
	ctx     context.Context // of the rank's part in the run; ends all waits
	conn    pubsub.Conn
	runID   string
	dir     string // output.dir, on this machine, which may be another directory
	limit   time.Duration
	first   time.Duration // firstAsk, except in tests
	host    string        // of the directory
	stage   string        // where in the directory the files are
	ofStudy bool          // files of a study
}

// Find returns the directory that a run's server holds, once the server has answered. dir is output.dir of this rank.
// ctx ends all later waits for the server; limit bounds each of them.
func Find(ctx context.Context, conn pubsub.Conn, runID, dir string, limit time.Duration) (*Place, error) {
	return find(&Place{ctx: ctx, conn: conn, runID: runID, dir: dir, limit: limit, first: firstAsk})
}

func find(p *Place) (*Place, error) {
	a, err := p.ask(request{Op: opLook})
	if err != nil {
		return nil, err
	}
	p.host, p.stage, p.ofStudy = a.Host, a.Stage, a.OfStudy
	return p, nil
}

// Open implements output.Place.
func (p *Place) Open(name string) (f output.File, way string, err error) {
	// The name of the stage cannot be guessed: a directory that has it is the server's.
	f, err = output.OpenStaged(filepath.Join(p.dir, p.stage), name, p.ofStudy)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return &file{p, name}, output.WroteNATS + p.host, nil
	}
	return f, output.WroteFile, err
}

// Create implements output.Place.
func (p *Place) Create(name string, size int64) (output.File, error) {
	if err := p.do(request{Op: opCreate, File: name, Size: size}); err != nil {
		return nil, err
	}
	f, _, err := p.Open(name)
	return f, err
}

// Remove implements output.Place. After the end of ctx it leaves that to the process that holds the directory: the
// server may not be reachable any more.
func (p *Place) Remove(name string) error {
	if p.ctx.Err() != nil {
		return nil
	}
	return p.do(request{Op: opRemove, File: name})
}

// Put implements output.Place.
func (p *Place) Put(name string) error { return p.do(request{Op: opPut, File: name}) }

// Commit implements output.Place.
func (p *Place) Commit(names []string) error { return p.do(request{Op: opCommit, Files: names}) }

// TrimSeries implements output.Place.
func (p *Place) TrimSeries(sweeps int) error { return p.do(request{Op: opTrim, Sweeps: sweeps}) }

// GrowProbes implements output.Place.
func (p *Place) GrowProbes(before int) (output.File, int64, error) {
	a, err := p.ask(request{Op: opGrow, Sweeps: before})
	return &file{p, configs.ProbesFile}, a.Size, err
}

func (p *Place) do(r request) error {
	_, err := p.ask(r)
	return err
}

// ask repeats a request until an answer comes or p.limit is over.
func (p *Place) ask(r request) (answer, error) {
	fail := func(err error) (answer, error) {
		what := cmp.Or(r.File, strings.Join(r.Files, ", "))
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
	case err == nil:
		return answer{}, refusal{a.Error, a.Full}
	case p.ctx.Err() != nil:
		return fail(context.Cause(p.ctx))
	case ctx.Err() != nil:
		return fail(fmt.Errorf("no answer within %v", p.limit))
	}
	return fail(err)
}

// refusal is the error of the process that holds the directory.
type refusal struct {
	text string
	full bool // the disk
}

func (r refusal) Error() string { return r.text }

func (r refusal) Is(target error) bool { return r.full && target == output.ErrNoSpace }

// file is a file whose bytes are sent to the place. It stays open there, for other ranks.
type file struct {
	place *Place
	name  string
}

func (f *file) WriteAt(b []byte, at int64) (int, error) {
	size := min(pieceBytes, int(f.place.conn.MaxPayload())-headBytes)
	if size <= 0 {
		return 0, fmt.Errorf("the server's max_payload of %d is too small", f.place.conn.MaxPayload())
	}
	for n := 0; n < len(b); n += size {
		piece := b[n:min(n+size, len(b))]
		if err := f.place.do(request{Op: opWrite, File: f.name, Offset: at + int64(n), data: piece}); err != nil {
			return n, err
		}
	}
	return len(b), nil
}

func (f *file) Sync() error { return f.place.do(request{Op: opSync, File: f.name}) }

func (f *file) Close() error { return nil }
