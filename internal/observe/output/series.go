package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"jacobi/configs"
)

// putIndex puts the list of the series in place.
func (h *Held) putIndex() error {
	series, err := h.series()
	if err != nil {
		return err
	}
	name := h.out.Index()
	f, err := h.Create(name, 0)
	if err == nil {
		err = write(f, collection(h.out, series))
	}
	if err == nil {
		err = h.put(name)
	}
	return err
}

// TrimSeries implements Place. Only the first call removes files, so that none of this run's is lost to a repetition.
func (h *Held) TrimSeries(sweeps int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trimmed {
		return nil
	}
	h.trimmed = true
	series, err := h.series()
	if err == nil && h.out.Index() != "" {
		if err = os.Remove(h.final(h.out.Index())); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	for _, n := range series {
		if n > sweeps && err == nil {
			path := h.final(h.out.SeriesFile(n))
			if err = checkTarget(path); err == nil {
				err = os.RemoveAll(path) // a Zarr group is a directory
			}
		}
	}
	if err != nil {
		return fmt.Errorf("remove the series of an earlier run: %w", err)
	}
	return nil
}

// series returns the numbers of sweeps of the files of the series that are in place, in ascending order.
func (h *Held) series() (sweeps []int, err error) {
	entries, err := os.ReadDir(h.dir)
	for _, e := range entries {
		if n, ok := h.out.InSeries(e.Name()); ok && (e.Type().IsRegular() || e.IsDir() && isZarr(e.Name())) {
			sweeps = append(sweeps, n)
		}
	}
	slices.Sort(sweeps)
	return sweeps, err
}

// collection returns the list of a series for ParaView, in VTK's XML format for collections (ParaView's wiki, "PVD File
// Format"). The time of a field is its number of sweeps.
func collection(o configs.Output, sweeps []int) []byte {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n  <Collection>\n")
	for _, n := range sweeps {
		fmt.Fprintf(&b, "    <DataSet timestep=\"%d\" part=\"0\" file=\"%s\"/>\n", n, escapeXML(o.SeriesFile(n)))
	}
	b.WriteString("  </Collection>\n</VTKFile>\n")
	return []byte(b.String())
}

func escapeXML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}
