package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jacobi/configs"
	"jacobi/internal/base/durable"
)

// PutInSeries implements Place.
func (h *Held) PutInSeries(o configs.Output, file string) error {
	err := h.putInSeries(o, file)
	if err != nil {
		return fmt.Errorf("put a field of the series in place: %w", err)
	}
	return nil
}

func (h *Held) putInSeries(o configs.Output, file string) error {
	name, err := NameOfPartial(file, h.runID)
	if err != nil {
		return err
	}
	if _, ok := o.InSeries(name); !ok {
		return fmt.Errorf("%s is not in the series of %s", name, o.Field)
	}
	if err := checkTarget(filepath.Join(string(h.Dir), name)); err != nil {
		return err
	}
	if err := rename(string(h.Dir), []string{file}, h.runID, nil); err != nil {
		return err
	}
	if err := durable.SyncDir(string(h.Dir)); err != nil || o.Index() == "" {
		return err
	}
	series, err := h.series(o)
	if err != nil {
		return err
	}
	return WriteFile(string(h.Dir), o.Index(), h.runID, collection(o, series))
}

// TrimSeries implements Place. Only the first call removes files, so that none of this run's is lost to a repetition.
func (h *Held) TrimSeries(o configs.Output, sweeps int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trimmed {
		return nil
	}
	h.trimmed = true
	series, err := h.series(o)
	if err == nil && o.Index() != "" {
		if err = os.Remove(filepath.Join(string(h.Dir), o.Index())); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	for _, n := range series {
		if n > sweeps && err == nil {
			path := filepath.Join(string(h.Dir), o.SeriesFile(n))
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

// series returns the numbers of sweeps of the files of a series, in ascending order.
func (h *Held) series(o configs.Output) (sweeps []int, err error) {
	entries, err := os.ReadDir(string(h.Dir))
	for _, e := range entries {
		if n, ok := o.InSeries(e.Name()); ok && (e.Type().IsRegular() || e.IsDir() && isZarr(e.Name())) {
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
