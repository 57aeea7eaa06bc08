package view

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"jacobi/internal/base/npy"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// fieldFile is an open file of a field. Its rows are dense and little-endian. Several goroutines may call row at once.
type fieldFile struct {
	f      *os.File
	mesh   solver.Mesh // without walls
	data   int64       // offset of row 0
	hx, hy float64     // distances between neighbouring points; 0 if the file does not have them
}

// openField opens a .npy or a .vti file, or a Zarr group of the launcher. The name's ending says which.
func openField(path string) (*fieldFile, error) {
	read, file := readNPY, path
	switch strings.ToLower(filepath.Ext(path)) {
	case output.VTI:
		read = readVTI
	case output.Zarr:
		read, file = readShard, filepath.Join(path, output.ShardFile)
	}
	f, err := regular.Open(file)
	if err != nil {
		return nil, err
	}
	s, err := read(f)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", show.Text(path), err), f.Close())
	}
	return s, nil
}

// row reads the columns [lo, lo + len(dst)/size) of a row of the mesh, where size is that of a value.
func (s *fieldFile) row(row, lo int, dst []byte) error {
	m := s.mesh
	if n := len(dst) / m.DType.Size(); row < 0 || row >= m.NY || lo < 0 || lo+n > m.NX {
		return fmt.Errorf("columns [%d, %d) of row %d: the mesh has %d x %d points", lo, lo+n, row, m.NX, m.NY)
	}
	at := s.data + int64(row)*int64(m.RowBytes()) + int64(lo*m.DType.Size())
	if _, err := s.f.ReadAt(dst, at); err != nil {
		return fmt.Errorf("read row %d: %w", row, err)
	}
	return nil
}

// maxSide bounds the sides of a mesh, so that products of them do not overflow.
const maxSide = math.MaxInt32

// check returns an error unless the file holds all rows.
func (s *fieldFile) check() error {
	m := s.mesh
	if m.NX < 2 || m.NY < 2 || m.NX > maxSide || m.NY > maxSide {
		return fmt.Errorf("a mesh of %d x %d; sides must have 2 to %d points", m.NX, m.NY, maxSide)
	}
	for _, side := range []struct{ h, points float64 }{{s.hx, float64(m.NX)}, {s.hy, float64(m.NY)}} {
		if !(side.h >= 0) || math.IsInf(side.h*side.points, 0) {
			return fmt.Errorf("spacings %g and %g: must be above 0 and give the mesh finite sides", s.hx, s.hy)
		}
	}
	info, err := s.f.Stat()
	if err != nil {
		return err
	}
	if have := info.Size() - s.data; have < 0 || have/int64(m.RowBytes()) < int64(m.NY) {
		return fmt.Errorf("truncated: %d bytes; it must have %d x %d values of %v from byte %d on", info.Size(), m.NX,
			m.NY, m.DType, s.data)
	}
	return nil
}

func readNPY(f *os.File) (*fieldFile, error) {
	h, err := npy.ReadHeader(f)
	if err != nil {
		return nil, err
	}
	dtype, ok := map[string]solver.DType{"<f4": solver.Float32, "<f8": solver.Float64}[h.Descr]
	if !ok || h.Fortran {
		return nil, fmt.Errorf("type %s, Fortran order %v; must be <f4 or <f8 (float32 or float64) in C order",
			show.Text(h.Descr), h.Fortran)
	}
	s := &fieldFile{f: f, data: h.Size, mesh: solver.Mesh{DType: dtype}}
	if n, _ := fmt.Sscanf(h.Shape, "(%d, %d)", &s.mesh.NY, &s.mesh.NX); n != 2 || strings.Count(h.Shape, ",") != 1 {
		return nil, fmt.Errorf("shape %s; it must have two dimensions", show.Text(h.Shape))
	}
	return s, nil
}

func readShard(f *os.File) (*fieldFile, error) {
	shard, data, err := output.ReadShard(f)
	if err != nil {
		return nil, err
	}
	s := &fieldFile{f: f, data: data, hx: shard.HX, hy: shard.HY}
	s.mesh, err = shard.Mesh()
	return s, err
}

// vtiFile is the XML of a .vti file before its appended data.
type vtiFile struct {
	Type       string `xml:"type,attr"`
	ByteOrder  string `xml:"byte_order,attr"`
	HeaderType string `xml:"header_type,attr"`
	Compressor string `xml:"compressor,attr"`
	Image      struct {
		Extent  string `xml:"WholeExtent,attr"`
		Spacing string `xml:"Spacing,attr"`
		Pieces  []struct {
			Extent string `xml:"Extent,attr"`
			Arrays []struct {
				Type       string `xml:"type,attr"`
				Format     string `xml:"format,attr"`
				Components string `xml:"NumberOfComponents,attr"`
				Offset     int64  `xml:"offset,attr"`
			} `xml:"PointData>DataArray"`
		} `xml:"Piece"`
	} `xml:"ImageData"`
}

// maxXML is far above the size of the XML before the values.
const maxXML = 1 << 16

// readVTI reads the head of an image as this product and VTK's writers in raw appended mode write it.
func readVTI(f *os.File) (*fieldFile, error) {
	text := make([]byte, maxXML)
	n, err := io.ReadFull(f, text)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	head, rest, found := strings.Cut(string(text[:n]), "<AppendedData")
	_, after, raw := strings.Cut(rest, "_")
	if !found || !raw || !strings.Contains(rest[:len(rest)-len(after)], `encoding="raw"`) {
		return nil, errors.New("no raw appended data; it must be a .vti file as the launcher writes it")
	}
	var v vtiFile
	if err := xml.Unmarshal([]byte(head+"</VTKFile>"), &v); err != nil {
		return nil, fmt.Errorf("its XML: %s", show.Text(err.Error()))
	}
	s := &fieldFile{f: f, data: int64(n - len(after) + 8)}
	var x0, x1, y0, y1, z0, z1 int
	var hz float64
	_, err = fmt.Sscan(v.Image.Extent, &x0, &x1, &y0, &y1, &z0, &z1)
	if _, e := fmt.Sscan(v.Image.Spacing, &s.hx, &s.hy, &hz); err == nil {
		err = e
	}
	if err != nil || z0 != z1 || v.Type != "ImageData" || v.ByteOrder != "LittleEndian" || v.HeaderType != "UInt64" ||
		v.Compressor != "" || len(v.Image.Pieces) != 1 || v.Image.Pieces[0].Extent != v.Image.Extent ||
		len(v.Image.Pieces[0].Arrays) < 1 {
		return nil, errors.New("it must be a flat ImageData of one piece with an array, little-endian, with a UInt64 " +
			"header, without compression")
	}
	a := v.Image.Pieces[0].Arrays[0]
	dtype, ok := map[string]solver.DType{"Float32": solver.Float32, "Float64": solver.Float64}[a.Type]
	if !ok || a.Format != "appended" || a.Offset != 0 || a.Components != "" && a.Components != "1" {
		return nil, fmt.Errorf("an array of type %s, format %s, offset %d; it must be Float32 or Float64, appended "+
			"at 0, "+
			"with one component", show.Text(a.Type), show.Text(a.Format), a.Offset)
	}
	s.mesh = solver.Mesh{NX: x1 - x0 + 1, NY: y1 - y0 + 1, DType: dtype}
	if s.hx == 0 || s.hy == 0 {
		return nil, fmt.Errorf("spacings %g and %g: must be above 0", s.hx, s.hy)
	}
	return s, nil
}
