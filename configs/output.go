package configs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"jacobi/solver"
)

// Output names the files of a run. A file with an empty name is not written.
type Output struct {
	Dir     string `key:"dir"`
	Field   string `key:"field"`
	Picture string `key:"picture"`
	History string `key:"history"`
	Report  string `key:"report"`
	Trace   string `key:"trace"` // what the ranks did when

	PictureScale string `key:"picture_scale" allowed:"auto linear log sqrt"`
	Contours     int    `key:"contours" max:"100"` // lines in the picture; 0: none
	// Results says whether the energy, the fluxes, their balance and the extremes are worked out.
	Results bool `key:"results"`
	// Matrix says whether the matrix of the regions with values is worked out, by a solution for each of them.
	Matrix bool `key:"matrix"`
	// Gradient and Materials say whether -a grad u, and the coefficient with the fixed points, are written.
	Gradient  bool `key:"gradient"`
	Materials bool `key:"materials"`
	// Float32 rounds the values of fields of float64 as they are written.
	Float32 bool `key:"float32"`
	// Every is the interval of the series of fields, in sweeps; zero for no series.
	Every Interval `key:"every"`
	// Probes are points and lines whose values are recorded, in the form of ParseProbes, at the end and, with an
	// interval of their own or else Every, before.
	Probes      string   `key:"probes"`
	ProbesEvery Interval `key:"probes_every"`
}

// Stdout as the name of a history or a report stands for standard output.
const Stdout = "-"

// ToStdout reports whether one of the files goes to standard output.
func (o Output) ToStdout() bool { return slices.Contains(o.Names(), Stdout) }

// OutputFile is one file that a run writes.
type OutputFile struct {
	Key        string // "output.field" and so on
	Name       string
	extensions []string // that are allowed
	stdout     bool     // is allowed, too
}

// FieldEndings returns the endings of the names of fields, each of which stands for a format.
func FieldEndings() []string { return []string{".npy", ".vti", ".zarr"} }

// Files returns the files to write, the report last.
func (o Output) Files() []OutputFile {
	all := []OutputFile{
		{"output.field", o.Field, FieldEndings(), false},
		{"output.picture", o.Picture, []string{".png", ".jpg", ".jpeg"}, false},
		{"output.history", o.History, []string{".csv"}, true},
		{"output.probes", o.probesFile(), []string{".csv"}, false},
		{"output.trace", o.Trace, []string{".json"}, false},
		{"output.report", o.Report, []string{".json"}, true},
	}
	for i, a := range o.Arrays() {
		if o.Field != "" && !o.OneFile() {
			all = slices.Insert(all, 1+i, OutputFile{a.key, o.ArrayFile(a.Name), FieldEndings(), false})
		}
	}
	return slices.DeleteFunc(all, func(f OutputFile) bool { return f.Name == "" })
}

// Array is an array that a run writes beside the field.
type Array struct {
	Name string
	Mask bool // its values are true and false
	key  string
}

// Arrays returns the arrays that the keys ask for.
func (o Output) Arrays() (list []Array) {
	if o.Gradient {
		list = append(list, Array{"flux_x", false, "output.gradient"}, Array{"flux_y", false, "output.gradient"})
	}
	if o.Materials {
		list = append(list, Array{"coefficient", false, "output.materials"}, Array{"fixed", true, "output.materials"},
			Array{"outside", true, "output.materials"})
	}
	return list
}

// OneFile reports whether all arrays are in the file of the field.
func (o Output) OneFile() bool { return strings.EqualFold(filepath.Ext(o.Field), ".vti") }

// ArrayFile returns the name of the file of an array where each has one of its own.
func (o Output) ArrayFile(array string) string {
	end := filepath.Ext(o.Field)
	return strings.TrimSuffix(o.Field, end) + "-" + array + end
}

// Names returns the names of the files to write.
func (o Output) Names() (names []string) {
	for _, f := range o.Files() {
		names = append(names, f.Name)
	}
	return names
}

// maxOutputName leaves room for what the names of arrays and of runs of a study add.
const maxOutputName = 120

func (v *validator) output(c Config) {
	o := c.Output
	if o.Dir == "" {
		v.fault(`output.dir "": must be a directory ("." for the current one)`)
	}
	seen := map[string]string{}
	for _, f := range o.Files() {
		first, twice := seen[f.Name]
		seen[f.Name] = f.Key
		most := maxOutputName
		if f.Key == "output.field" && o.Series() {
			most -= len("-000000000")
		}
		switch {
		case strings.ContainsAny(f.Name, `/\`) || f.Name == "." || f.Name == "..":
			v.fault("%s %q: must be a plain file name; output.dir says where", f.Key, f.Name)
		case len(f.Name) > most:
			v.fault("%s: a name of %d bytes; at most %d are allowed", f.Key, len(f.Name), most)
		case !(f.stdout && f.Name == Stdout) &&
			!slices.Contains(f.extensions, strings.ToLower(filepath.Ext(f.Name))):
			or := ""
			if f.stdout {
				or = `, or be "-"`
			}
			v.fault("%s %q: the name has to end in %s%s", f.Key, f.Name, english.WordSeries(f.extensions, "or"), or)
		case twice:
			v.fault("%s %q: %s has this name", f.Key, f.Name, first)
		}
	}
	needsField := func(on bool, key, value string) {
		if on && o.Field == "" {
			v.fault("%s %s: output.field has to name a file", key, value)
		}
	}
	needsField(o.Gradient, "output.gradient", "true")
	needsField(o.Materials, "output.materials", "true")
	needsField(o.Series(), "output.every", strconv.Quote(o.Every.String()))
	if o.probesFile() == "" {
		return
	}
	walls, _ := c.Problem.Walls(c.Grid.DType) // problem reports the error
	if _, err := ParseProbes(o.Probes, solver.Mesh{NX: c.Grid.NX, NY: c.Grid.NY, Walls: walls}); err != nil {
		v.fault("output.probes %w", err)
	}
}

// Trace says which part of a run output.trace shows. A pass is up to halo.depth sweeps. With multigrid, cycles stand
// for passes and for sweeps.
type Trace struct {
	Passes int `key:"passes" min:"1" max:"10000"` // at each end of the run
	From   int `key:"from"`                       // passes that begin with sweep From or a later one,
	To     int `key:"to"`                         // and before sweep To; 0: to the end
}

// Series reports whether the run writes a series of fields.
func (o Output) Series() bool { return o.Every.Iterations > 0 }

// SeriesFile returns the name of the file of the series with the field after the given number of sweeps:
// field-000001000.npy for the field field.npy after 1000 sweeps.
func (o Output) SeriesFile(sweeps int) string {
	ending := filepath.Ext(o.Field)
	return fmt.Sprintf("%s-%09d%s", strings.TrimSuffix(o.Field, ending), sweeps, ending)
}

// SeriesFiles returns the names of the files of the series, with * for the number of sweeps.
func (o Output) SeriesFiles() string {
	ending := filepath.Ext(o.Field)
	return strings.TrimSuffix(o.Field, ending) + "-*" + ending
}

// InSeries returns the number of sweeps of a file of the series. ok is false if the name is not that of such a file.
func (o Output) InSeries(name string) (sweeps int, ok bool) {
	ending := filepath.Ext(o.Field)
	number, begins := strings.CutPrefix(name, strings.TrimSuffix(o.Field, ending)+"-")
	number, ends := strings.CutSuffix(number, ending)
	sweeps, err := strconv.Atoi(number)
	return sweeps, o.Series() && begins && ends && err == nil && sweeps >= 0 && o.SeriesFile(sweeps) == name
}

// Index returns the name of the file that lists the series: a collection for ParaView beside files of VTK's format, or
// "" if there is none.
func (o Output) Index() string {
	if ending := filepath.Ext(o.Field); o.Series() && strings.EqualFold(ending, ".vti") {
		return strings.TrimSuffix(o.Field, ending) + ".pvd"
	}
	return ""
}

// ProbesFile is the name of the file of the probes.
const ProbesFile = "probes.csv"

// Probe is a point or a line of the mesh whose values a run records.
type Probe struct {
	Name   string
	Points []MeshPoint
}

// MeshPoint is the point in column IX and row IY of the mesh.
type MeshPoint struct{ IX, IY int }

// maxProbed bounds the points of all probes: a run is to be sampled without a delay, and lines are to be read.
const maxProbed = 10000

// probesFile returns the name of the file of the probes, or "" without probes.
func (o Output) probesFile() string {
	if strings.TrimSpace(o.Probes) == "" {
		return ""
	}
	return ProbesFile
}

// ProbesInterval returns the interval of the values of the probes; zero for those of the end alone.
func (o Output) ProbesInterval() Interval { return cmp.Or(o.ProbesEvery, o.Every) }

// shortName is the pattern of the names of probes, and of the regions of a drawing.
const shortName = `[A-Za-z_][A-Za-z0-9_.-]{0,63}`

var (
	probeItem  = regexp.MustCompile(`^(` + shortName + `)\s*=\s*(.*)$`)
	probeShape = regexp.MustCompile(`^([(\[][^)\]]*[)\]])(?:\s*\.\.\s*([(\[][^)\]]*[)\]])(?:\s*/\s*(\d{1,9}))?)?$`)
)

// ParseProbes reads the value of output.probes for a mesh: points and lines with names.
//
//	centre=(0.5,0.5)         the point nearest to x and y, from 0 to 1 over width and height as in expressions
//	corner=[0,16]            the point in column 0 and row 16
//	cut=(0,0.5)..(1,0.5)/9   nine points of a line, both ends included; without /9 one in each column or row
func ParseProbes(text string, m solver.Mesh) (probes []Probe, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	seen, total := map[string]bool{}, 0
	for item := range strings.SplitSeq(text, ";") {
		item = strings.TrimSpace(item)
		p, err := parseProbe(item, m)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", item, err)
		}
		if seen[p.Name] {
			return nil, fmt.Errorf("%q: there is a probe of this name already", item)
		}
		seen[p.Name] = true
		if total += len(p.Points); total > maxProbed {
			return nil, fmt.Errorf("%q: at most %d points are allowed in all", item, maxProbed)
		}
		probes = append(probes, p)
	}
	return probes, nil
}

// ProbeNames returns the names of the probes in a value of output.probes, as far as it has its form.
func ProbeNames(text string) (names []string) {
	for item := range strings.SplitSeq(text, ";") {
		if m := probeItem.FindStringSubmatch(strings.TrimSpace(item)); m != nil {
			names = append(names, m[1])
		}
	}
	return names
}

func parseProbe(item string, mesh solver.Mesh) (Probe, error) {
	wrong := errors.New("must be NAME=(x,y), NAME=[ix,iy] or a line such as NAME=(0,0.5)..(1,0.5)/9")
	m := probeItem.FindStringSubmatch(item)
	if m == nil {
		return Probe{}, wrong
	}
	s := probeShape.FindStringSubmatch(m[2])
	if s == nil {
		return Probe{}, wrong
	}
	from, ok := parsePoint(s[1], mesh)
	to, okTo := from, true
	if s[2] != "" {
		to, okTo = parsePoint(s[2], mesh)
	}
	if !ok || !okTo {
		return Probe{}, fmt.Errorf("x and y must be from 0 to 1, ix from 0 to %d and iy from 0 to %d", mesh.NX-1,
			mesh.NY-1)
	}
	distance := func(a, b int) int { return max(a-b, b-a) }
	most := max(distance(from.IX, to.IX), distance(from.IY, to.IY)) + 1
	points := most
	if s[3] != "" {
		if points, _ = strconv.Atoi(s[3]); points < 2 || points > most {
			return Probe{}, fmt.Errorf("%s points: the line has 2 to %d", s[3], most)
		}
	}
	return Probe{m[1], line(from, to, min(points, maxProbed+1))}, nil
}

// line returns points of the line, both ends included. Each is the nearest one to its place.
func line(from, to MeshPoint, points int) (all []MeshPoint) {
	if points == 1 {
		return []MeshPoint{from}
	}
	between := func(a, b, i int) int { // the nearest integer to a + (b-a) i/(points-1); halves go up
		return a + solver.FloorDiv(2*(b-a)*i+(points-1), 2*(points-1))
	}
	for i := range points {
		all = append(all, MeshPoint{between(from.IX, to.IX, i), between(from.IY, to.IY, i)})
	}
	return all
}

// parsePoint reads (x,y) or [ix,iy].
func parsePoint(text string, m solver.Mesh) (p MeshPoint, ok bool) {
	last := len(text) - 1
	at := func(place string, n int, wall solver.Wall) (int, bool) {
		place = strings.TrimSpace(place)
		if text[0] == '[' {
			i, err := strconv.Atoi(place)
			return i, err == nil && i >= 0 && i < n
		}
		x, ok := Number(place)
		return int(math.Round(float64(x * float64(solver.Intervals(n, wall))))), ok && x >= 0 && x <= 1
	}
	first, second, _ := strings.Cut(text[1:last], ",")
	ix, okX := at(first, m.NX, m.Walls.Left)
	iy, okY := at(second, m.NY, m.Walls.Top)
	return MeshPoint{ix, iy}, okX && okY && (text[0] == '(') == (text[last] == ')')
}
