package convert

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"jacobi/configs"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
	"jacobi/internal/observe/output"
)

// maxReport bounds the report of a run, which somebody else may have written.
const maxReport = 64 << 20

// reported is what the report of a run says of its fields.
type reported struct {
	Mesh  output.MeshReport
	Setup struct {
		SpacingX float64 `json:"spacing_x"`
		SpacingY float64 `json:"spacing_y"`
	}
	Files  []output.FileReport
	Series *output.SeriesReport
}

// findSpacings takes the spacings that a .npy file cannot hold from the report beside it, if that is the report of this
// file or of its series. Else they stay unknown.
func (s *source) findSpacings(path string) {
	if s.hx != 0 && s.hy != 0 {
		return
	}
	r, err := readReport(filepath.Dir(path))
	if err != nil || r.Mesh.NX != s.mesh.NX || r.Mesh.NY != s.mesh.NY ||
		!r.lists(filepath.Base(path)) || checkSpacing(s.mesh, r.Setup.SpacingX, r.Setup.SpacingY) != nil {
		return
	}
	s.hx, s.hy = r.Setup.SpacingX, r.Setup.SpacingY
}

// readReport reads the report of the run that wrote dir.
func readReport(dir string) (r reported, err error) {
	data, err := regular.ReadFile(filepath.Join(dir, configs.Default().Output.Report), maxReport)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

// fieldOf returns the path of the field that the run in dir wrote, by its report.
func fieldOf(dir string) (string, error) {
	r, err := readReport(dir)
	if err != nil {
		return "", fmt.Errorf("%s: a directory whose report.json names no field: %w", show.Text(dir), err)
	}
	for _, f := range r.Files {
		switch name, _, _ := strings.Cut(f.Name, "/"); strings.ToLower(filepath.Ext(name)) {
		case ".npy", output.VTI, output.Zarr:
			return filepath.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("%s: a directory whose report.json names no field", show.Text(dir))
}

// lists reports whether the run wrote a field of this name.
func (r reported) lists(name string) bool {
	if r.Series != nil {
		if ok, err := filepath.Match(r.Series.Files, name); ok && err == nil {
			return true
		}
	}
	return slices.ContainsFunc(r.Files, func(f output.FileReport) bool { return f.Name == name })
}
