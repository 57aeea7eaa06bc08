package convert

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"jacobi/configs"
	"jacobi/internal/base/regular"
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
	data, err := regular.ReadFile(filepath.Join(filepath.Dir(path), configs.Default().Output.Report), maxReport)
	var r reported
	if err != nil || json.Unmarshal(data, &r) != nil || r.Mesh.NX != s.mesh.NX || r.Mesh.NY != s.mesh.NY ||
		!r.lists(filepath.Base(path)) || checkSpacing(s.mesh, r.Setup.SpacingX, r.Setup.SpacingY) != nil {
		return
	}
	s.hx, s.hy = r.Setup.SpacingX, r.Setup.SpacingY
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
