package output

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/durable"
	"jacobi/internal/base/regular"
)

// ShardFile is the file of the values in a Zarr group.
const ShardFile = "u/c/0/0"

const groupFile = "zarr.json" // the metadata of a group or an array

// PlaceGroup makes a Zarr group called name in dir around the partial file that holds its values. It replaces a group
// of this name at once. A repetition after a crash completes it, and does nothing after it was complete. It needs the
// inode of the file: after the exchange with an earlier group, that one has the hidden name. 0 is for calls that are
// not repeated after a crash.
func PlaceGroup(dir, file, name string, inode uint64) error {
	hidden, final := filepath.Join(dir, groupPartial(file)), filepath.Join(dir, name)
	if inode != 0 && inodeOf(filepath.Join(final, ShardFile)) == inode {
		return os.RemoveAll(hidden)
	}
	err := buildGroup(filepath.Join(dir, file), hidden)
	if errors.Is(err, fs.ErrNotExist) { // the values are in the hidden group, or in the final one
		if _, err := os.Lstat(hidden); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		err = nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(final); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(hidden, final)
	}
	if err := checkTarget(final); err != nil {
		return err
	}
	return swapGroup(hidden, final)
}

// swapGroup gives the group hidden the name final, and removes the group that has it.
func swapGroup(hidden, final string) error {
	err := unix.Renameat2(unix.AT_FDCWD, hidden, unix.AT_FDCWD, final, unix.RENAME_EXCHANGE)
	if err == nil {
		_ = os.RemoveAll(hidden) // the new group is in place; what is left of the old one is a leftover
		return nil
	}
	// Not every file system can exchange two names, and they say so with different errors.
	old := movedName(hidden)
	if err := os.Rename(final, old); err != nil {
		return err
	}
	if err := os.Rename(hidden, final); err != nil {
		return errors.Join(err, os.Rename(old, final))
	}
	return os.RemoveAll(old)
}

// movedSuffix ends the hidden name of a group that swapGroup has moved away, in place of partialSuffix.
const movedSuffix = ".old"

// movedName returns where swapGroup moves the group that hidden replaces.
func movedName(hidden string) string { return strings.TrimSuffix(hidden, partialSuffix) + movedSuffix }

// giveBack gives the groups that swapGroup has moved away their names back, where a crash kept the new ones from them.
func giveBack(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		end := strings.LastIndex(strings.ToLower(e.Name()), Zarr+".")
		if end < 0 || !e.IsDir() || !strings.HasSuffix(e.Name(), movedSuffix) || !isPartial(e.Name()) {
			continue
		}
		final := filepath.Join(dir, e.Name()[1:end+len(Zarr)])
		if _, err := os.Lstat(final); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := os.Rename(filepath.Join(dir, e.Name()), final)
		if err == nil {
			err = durable.SyncDir(dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// groupPartial returns the temporary name of the group around a partial file. Only its nonce differs.
func groupPartial(file string) string {
	parts := strings.Split(file, ".")
	if n := len(parts) - 2; n > 0 {
		parts[n] = strings.ToLower(parts[n])
	}
	return strings.Join(parts, ".")
}

// inodeOf returns the number of a file; 0 if there is none.
func inodeOf(path string) uint64 {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return 0
	}
	return st.Ino
}

// owned returns the files and directories of a group.
func owned() []string {
	return []string{".", groupFile, "u", "u/" + groupFile, "u/c", "u/c/0", ShardFile,
		"x", "x/" + groupFile, "x/c", "x/c/0", "y", "y/" + groupFile, "y/c", "y/c/0"}
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
		if name, err := filepath.Rel(path, file); err != nil || !slices.Contains(owned(), name) {
			return fmt.Errorf("has %s, which no run wrote; remove or rename the directory", name)
		}
		return nil
	})
}

// buildGroup makes a group at path, and moves the file with the values into it last.
func buildGroup(file, path string) error {
	f, err := regular.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	s, _, err := ReadShard(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil { // half a group, from before a crash
		return err
	}
	for _, sub := range []string{"u/c/0", "x/c", "y/c"} {
		if err := os.MkdirAll(filepath.Join(path, sub), 0o777); err != nil {
			return err
		}
	}
	files := s.metadata()
	files["x/c/0"], files["y/c/0"] = Positions(s.NX, s.HX), Positions(s.NY, s.HY)
	for name, data := range files {
		if err := durable.Create(filepath.Join(path, name), data); err != nil {
			return err
		}
	}
	if err := os.Rename(file, filepath.Join(path, ShardFile)); err != nil {
		return err
	}
	for _, sub := range []string{"u/c/0", "u/c", "u", "x/c", "x", "y/c", "y", "."} {
		if err := durable.SyncDir(filepath.Join(path, sub)); err != nil {
			return err
		}
	}
	return nil
}

// Positions returns n float64 values 0, h, 2h and so on.
func Positions(n int, h float64) (b []byte) {
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(i)*h))
	}
	return b
}

// codec is an extension point of Zarr's metadata.
type codec struct {
	Name          string `json:"name"`
	Configuration any    `json:"configuration,omitempty"`
}

// zarrArray is the metadata of an array (Zarr's specification, version 3).
type zarrArray struct {
	Format     int      `json:"zarr_format"`
	Node       string   `json:"node_type"`
	Shape      []int    `json:"shape"`
	DType      string   `json:"data_type"`
	Grid       codec    `json:"chunk_grid"`
	Keys       codec    `json:"chunk_key_encoding"`
	Fill       any      `json:"fill_value"`
	Codecs     []codec  `json:"codecs"`
	Attributes struct{} `json:"attributes"`
	Dimensions []string `json:"dimension_names"`
}

// metadata returns the metadata of the group and of its arrays u, x and y, by file. xarray finds the coordinates x and
// y by their names.
func (s Shard) metadata() map[string][]byte {
	type chunks struct {
		Shape []int `json:"chunk_shape"`
	}
	littleEndian := codec{"bytes", map[string]string{"endian": "little"}}
	array := func(dtype string, shape, chunk []int, names []string, codecs ...codec) zarrArray {
		return zarrArray{Format: 3, Node: "array", Shape: shape, DType: dtype, Grid: codec{"regular", chunks{chunk}},
			Fill: "NaN", // a file that is missing reads as no number
			Keys: codec{"default", map[string]string{"separator": "/"}}, Codecs: codecs, Dimensions: names}
	}
	sharded := codec{"sharding_indexed", map[string]any{
		"chunk_shape": []int{s.Rows, s.NX}, "codecs": []codec{littleEndian},
		"index_codecs": []codec{littleEndian, {Name: "crc32c"}}, "index_location": "end"}}
	u := array(s.DType, []int{s.NY, s.NX}, []int{s.chunks() * s.Rows, s.NX}, []string{"y", "x"}, sharded)
	if s.DType == maskType {
		u.Fill = false
	}
	x := array("float64", []int{s.NX}, []int{s.NX}, []string{"x"}, littleEndian)
	y := array("float64", []int{s.NY}, []int{s.NY}, []string{"y"}, littleEndian)
	group := map[string]any{"zarr_format": 3, "node_type": "group", "attributes": struct{}{},
		// Readers that open only this file need not list directories.
		"consolidated_metadata": map[string]any{"kind": "inline", "must_understand": false,
			"metadata": map[string]any{"u": u, "x": x, "y": y}}}
	files := map[string][]byte{}
	for name, v := range map[string]any{"": group, "u": u, "x": x, "y": y} {
		files[filepath.Join(name, groupFile)], _ = json.MarshalIndent(v, "", "  ") // plain values
	}
	return files
}
