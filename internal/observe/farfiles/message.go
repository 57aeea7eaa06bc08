// Package farfiles lets ranks write the files of a run into a directory of another machine, over NATS: into the
// launcher's, if the nodes share no file system with it. A message holds one piece of a file. Each piece is answered,
// and may be sent again. Only one piece a rank is in memory.
package farfiles

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"
)

const (
	// pieceBytes is the maximum size of a piece. NATS has its best throughput with 256 to 512 KiB.
	pieceBytes = 512 << 10
	// headBytes is the maximum size of the rest of a message.
	headBytes = 2 << 10
	// The pace of requests without an answer: a disk may be slow.
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
	Error string `json:"error,omitempty"`
	Full  bool   `json:"full,omitempty"`  // Error is that the disk is full
	Host  string `json:"host,omitempty"`  // of opLook: that of the directory
	Stage string `json:"stage,omitempty"` // of opLook: where in the directory the files are
	Loose bool   `json:"loose,omitempty"` // of opLook: see output.Held.Loosen
	Size  int64  `json:"size,omitempty"`  // of opGrow
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
