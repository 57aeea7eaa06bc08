package output

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"jacobi/internal/base/regular"
	"jacobi/solver"
)

// Zarr is the ending of the names of Zarr groups.
const Zarr = ".zarr"

// isZarr reports whether the field of this name is a Zarr group.
func isZarr(name string) bool { return strings.EqualFold(filepath.Ext(name), Zarr) }

const (
	// shardHead is the length of the head of a shard. It holds every Shard, and aligns the rows to pages.
	shardHead = 4096
	// shardChunk is about the size of a chunk: large enough for a disk, small enough to read a part of a field.
	shardChunk = 4 << 20
)

// Shard describes the file of the values of a Zarr array: one shard for the whole array, whose chunks, of whole rows,
// follow each other (Zarr's specification, version 3, codec sharding_indexed). The rows of a field are therefore dense
// in one file, to which all ranks write. The format lets other bytes stand before the chunks. This one has the Shard
// there, as JSON.
type Shard struct {
	NX    int     `json:"nx"`
	NY    int     `json:"ny"`
	DType string  `json:"dtype"`
	HX    float64 `json:"hx"` // spacings
	HY    float64 `json:"hy"`
	Rows  int     `json:"rows"` // of a chunk
}

// maskType is Zarr's name of the type of truth values.
const maskType = "bool"

// newShard returns the shard of a field. Its chunks depend on the mesh alone.
func newShard(m solver.Mesh, hx, hy float64) Shard {
	bytes := float64(m.NY) * float64(m.NX) * float64(m.DType.Size())
	chunks := max(1, min(m.NY, int(math.Ceil(bytes/shardChunk))))
	dtype := m.DType.String()
	if m.DType == Mask {
		dtype = maskType
	}
	return Shard{NX: m.NX, NY: m.NY, DType: dtype, HX: hx, HY: hy, Rows: (m.NY + chunks - 1) / chunks}
}

// chunks returns the number of chunks. The last one may have rows beyond the array.
func (s Shard) chunks() int { return (s.NY + s.Rows - 1) / s.Rows }

// Mesh returns the mesh of the values, without walls.
func (s Shard) Mesh() (solver.Mesh, error) {
	m := solver.Mesh{NX: s.NX, NY: s.NY}
	for _, d := range []solver.DType{solver.Float32, solver.Float64} {
		if s.DType == d.String() {
			m.DType = d
			return m, nil
		}
	}
	return m, fmt.Errorf("type %q; float32 and float64 are known", s.DType)
}

// zarrFormat returns the format of the shard of a field.
func zarrFormat(m solver.Mesh, hx, hy float64) Format {
	s := newShard(m, hx, hy)
	head, _ := json.Marshal(s) // numbers and a plain text
	head = append(head, bytes.Repeat([]byte{' '}, shardHead-1-len(head))...)
	chunk := s.Rows * m.RowBytes()
	tail := make([]byte, (s.chunks()*s.Rows-m.NY)*m.RowBytes(), (s.chunks()*s.Rows-m.NY)*m.RowBytes()+16*s.chunks()+4)
	padding := len(tail)
	for c := range s.chunks() {
		tail = binary.LittleEndian.AppendUint64(tail, shardHead+uint64(c)*uint64(chunk))
		tail = binary.LittleEndian.AppendUint64(tail, uint64(chunk))
	}
	sum := crc32.Checksum(tail[padding:], crc32.MakeTable(crc32.Castagnoli))
	return Format{Plane: Plane{append(head, '\n'), m.DType}, Tail: binary.LittleEndian.AppendUint32(tail, sum),
		From: m.DType, Group: s.Group()}
}

// ReadShard reads the Shard from the file of a Zarr array that this package has written. data is the offset of row 0.
func ReadShard(f io.ReaderAt) (s Shard, data int64, err error) {
	head := make([]byte, shardHead)
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return s, 0, err
	}
	if err := json.Unmarshal(bytes.TrimRight(head, "\x00"), &s); err != nil || s.NX < 1 || s.NY < 1 || s.Rows < 1 {
		return s, 0, errors.New("not the values of a Zarr array as the launcher writes them")
	}
	return s, shardHead, nil
}

// ShardFile is the file of the values in a Zarr group.
const ShardFile = "u/c/0/0"

const groupFile = "zarr.json" // the metadata of a group or an array

// groupDirs are the directories of a group.
var groupDirs = []string{"u/c/0", "u/c", "u", "x/c", "x", "y/c", "y", "."}

// isPart reports whether a file is one of a group.
func isPart(name string) bool {
	return slices.Contains([]string{groupFile, "u/" + groupFile, ShardFile, "x/" + groupFile, "x/c/0", "y/" + groupFile,
		"y/c/0"}, name)
}

// unfitGroup is unfit for a path that exists. Nothing may be in the group but what a run writes: the whole directory
// would be removed.
func unfitGroup(path string) error {
	b, err := regular.ReadFile(filepath.Join(path, groupFile), 1<<20)
	var meta struct {
		Format int    `json:"zarr_format"`
		Node   string `json:"node_type"`
	}
	if err == nil {
		err = json.Unmarshal(b, &meta)
	}
	if err != nil || meta.Format != 3 || meta.Node != "group" {
		return errors.New("is no Zarr group of format 3")
	}
	return filepath.WalkDir(path, func(file string, _ fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("cannot be read: %w", err)
		}
		if name, err := filepath.Rel(path, file); err != nil || !isPart(name) && !slices.Contains(groupDirs, name) {
			return fmt.Errorf("has %s, which no run wrote; remove or rename the directory", name)
		}
		return nil
	})
}

// positions returns n float64 values 0, h, 2h and so on.
func positions(n int, h float64) (b []byte) {
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(i)*h))
	}
	return b
}

// zarrArray is the metadata of an array (Zarr's specification, version 3), with its type, its shape, that of a chunk,
// the value of missing files, the codecs and the dimensions.
const zarrArray = `{"zarr_format":3,"node_type":"array","shape":%[2]s,"data_type":"%[1]s",` +
	`"chunk_grid":{"name":"regular","configuration":{"chunk_shape":%[3]s}},` +
	`"chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},"fill_value":%[4]s,"codecs":[%[5]s],` +
	`"attributes":{},"dimension_names":[%[6]s]}`

// Group returns the files of the group around that of the values: the metadata of the group and of its arrays u, x and
// y, and the coordinates x and y, which xarray finds by their names.
func (s Shard) Group() map[string][]byte {
	const none, littleEndian = `"NaN"`, `{"name":"bytes","configuration":{"endian":"little"}}`
	side := func(name string, n int) string {
		shape := fmt.Sprintf("[%d]", n)
		return fmt.Sprintf(zarrArray, "float64", shape, shape, none, littleEndian, strconv.Quote(name))
	}
	missing := none
	if s.DType == maskType {
		missing = "false"
	}
	sharded := fmt.Sprintf(`{"name":"sharding_indexed","configuration":{"chunk_shape":[%d,%d],"codecs":[%[3]s],`+
		`"index_codecs":[%[3]s,{"name":"crc32c"}],"index_location":"end"}}`, s.Rows, s.NX, littleEndian)
	u := fmt.Sprintf(zarrArray, s.DType, fmt.Sprintf("[%d,%d]", s.NY, s.NX),
		fmt.Sprintf("[%d,%d]", s.chunks()*s.Rows, s.NX), missing, sharded, `"y","x"`)
	x, y := side("x", s.NX), side("y", s.NY)
	// Readers that open only the file of the group need not list directories.
	group := fmt.Sprintf(`{"attributes":{},"consolidated_metadata":{"kind":"inline","metadata":{"u":%s,"x":%s,"y":%s},`+
		`"must_understand":false},"node_type":"group","zarr_format":3}`, u, x, y)
	files := map[string][]byte{"x/c/0": positions(s.NX, s.HX), "y/c/0": positions(s.NY, s.HY)}
	for name, text := range map[string]string{"": group, "u": u, "x": x, "y": y} {
		var b bytes.Buffer
		_ = json.Indent(&b, []byte(text), "", "  ") // plain JSON
		files[filepath.Join(name, groupFile)] = b.Bytes()
	}
	return files
}
