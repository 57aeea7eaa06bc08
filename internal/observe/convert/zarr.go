package convert

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"jacobi/internal/base/durable"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// group is a Zarr group of format 2 (https://zarr-specs.readthedocs.io), for older readers: the array u
// of shape (ny, nx), and the coordinates x and y, which xarray finds by their names. A chunk of u is some rows as raw
// bytes.
type group struct {
	scratch   *scratch
	path, dir string // dir is in scratch until the group is complete
	mesh      solver.Mesh
	chunk     int   // rows
	chunks    int   // that are written
	left      int64 // bytes that are to be written
	buf       []byte
}

// zarrArray is the metadata of an array.
type zarrArray struct {
	Chunks     []int           `json:"chunks"`
	Compressor json.RawMessage `json:"compressor"`
	DType      string          `json:"dtype"`
	Fill       string          `json:"fill_value"`
	Filters    json.RawMessage `json:"filters"`
	Order      string          `json:"order"`
	Shape      []int           `json:"shape"`
	Format     int             `json:"zarr_format"`
}

// arrayOf returns the metadata of an array. Its fill value is no number: xarray takes all values that equal the fill
// value of an array of format 2 for missing.
func arrayOf(dtype solver.DType, shape, chunks []int) zarrArray {
	return zarrArray{Chunks: chunks, DType: fmt.Sprintf("<f%d", dtype.Size()), Fill: "NaN", Order: "C", Shape: shape,
		Format: 2}
}

// newGroup makes the directory and all of it but the values of u.
func newGroup(path string, m solver.Mesh, hx, hy float64) (*group, error) {
	if err := output.CheckSpace(filepath.Dir(path), int64(m.NY)*int64(m.RowBytes())); err != nil {
		return nil, err
	}
	hidden, err := newScratch(path)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(hidden.dir, "group")
	if err := os.Mkdir(dir, 0o755); err != nil {
		hidden.close()
		return nil, err
	}
	g := &group{scratch: hidden, path: path, dir: dir, mesh: m, chunk: min(m.NY, max(1, (16<<20)/m.RowBytes())),
		left: int64(m.NY) * int64(m.RowBytes())}
	g.buf = make([]byte, 0, g.chunk*m.RowBytes())
	if err := g.describe(hx, hy); err != nil {
		g.abort()
		return nil, err
	}
	return g, nil
}

// describe writes the metadata and the coordinates.
func (g *group) describe(hx, hy float64) error {
	type attributes struct {
		Dimensions []string `json:"_ARRAY_DIMENSIONS"`
	}
	m := g.mesh
	all := map[string]any{
		".zgroup":   map[string]int{"zarr_format": 2},
		".zattrs":   struct{}{},
		"u/.zarray": arrayOf(m.DType, []int{m.NY, m.NX}, []int{g.chunk, m.NX}),
		"u/.zattrs": attributes{[]string{"y", "x"}},
		"x/.zarray": arrayOf(solver.Float64, []int{m.NX}, []int{m.NX}),
		"x/.zattrs": attributes{[]string{"x"}},
		"y/.zarray": arrayOf(solver.Float64, []int{m.NY}, []int{m.NY}),
		"y/.zattrs": attributes{[]string{"y"}},
	}
	for _, array := range []string{"u", "x", "y"} {
		if err := os.Mkdir(filepath.Join(g.dir, array), 0o755); err != nil {
			return err
		}
	}
	for name, v := range all {
		if err := g.writeJSON(name, v); err != nil {
			return err
		}
	}
	// Readers that open only this file need not list directories.
	whole := map[string]any{"metadata": all, "zarr_consolidated_format": 1}
	if err := g.writeJSON(".zmetadata", whole); err != nil {
		return err
	}
	if err := g.create("x/0", output.Positions(m.NX, hx)); err != nil {
		return err
	}
	return g.create("y/0", output.Positions(m.NY, hy))
}

func (g *group) writeJSON(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "    ")
	if err != nil {
		return err
	}
	return g.create(name, data)
}

func (g *group) create(name string, data []byte) error {
	return durable.Create(filepath.Join(g.dir, name), data)
}

func (g *group) write(values []byte) error {
	for len(values) > 0 {
		n := min(len(values), cap(g.buf)-len(g.buf))
		g.buf, values, g.left = append(g.buf, values[:n]...), values[n:], g.left-int64(n)
		if len(g.buf) == cap(g.buf) || g.left == 0 {
			if err := g.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes a chunk. The last one is as long as the others, as the format wants it.
func (g *group) flush() error {
	used := len(g.buf)
	g.buf = g.buf[:cap(g.buf)]
	clear(g.buf[used:])
	err := g.create(fmt.Sprintf("u/%d.0", g.chunks), g.buf)
	g.buf, g.chunks = g.buf[:0], g.chunks+1
	return err
}

func (g *group) finish() error { return os.Rename(g.dir, g.path) }

func (g *group) abort() { g.scratch.close() }
