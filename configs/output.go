package configs

import (
	"path/filepath"
	"slices"
	"strings"
)

// Output names the files of a run. A file with an empty name is not written.
type Output struct {
	Dir     string `key:"dir"`
	Field   string `key:"field"`
	Picture string `key:"picture"`
	History string `key:"history"`
	Report  string `key:"report"`
	Trace   string `key:"trace"` // what the ranks did when

	// auto | linear | log | sqrt
	PictureScale string `key:"picture_scale"`
	Contours     int    `key:"contours"` // lines in the picture; 0: none
	// Results says whether the energy, the fluxes and the extremes are worked out.
	Results bool `key:"results"`
	// Gradient and Materials say whether -a grad u, and the coefficient with the fixed points, are written.
	Gradient  bool `key:"gradient"`
	Materials bool `key:"materials"`
	// Float32 rounds the values of fields of float64 as they are written.
	Float32 bool `key:"float32"`
	// Every is the interval of the series of fields, in sweeps; zero for no series.
	Every Interval `key:"every"`
	// Probes are points and lines whose values are recorded, in the form of ParseProbes, at an interval of their own or
	// else at Every.
	Probes      string   `key:"probes"`
	ProbesEvery Interval `key:"probes_every"`
	// Animation shows the field at an interval of its own, or else at Every.
	Animation      string   `key:"animation"`
	AnimationEvery Interval `key:"animation_every"`
}

// Stdout as the name of a history or a report stands for standard output.
const Stdout = "-"

// ToStdout reports whether one of the files goes to standard output.
func (o Output) ToStdout() bool { return slices.Contains(o.Names(), Stdout) }

// OutputFile is one file that a run writes.
type OutputFile struct {
	Key        string // "output.field" and so on
	Name       string
	extensions []string // allowed extensions; Stdout among them allows standard output
}

// Files returns the files to write, the report last.
func (o Output) Files() []OutputFile {
	all := []OutputFile{
		{"output.field", o.Field, []string{".npy", ".vti", ".zarr"}},
		{"output.picture", o.Picture, []string{".png", ".jpg", ".jpeg"}},
		{"output.animation", o.Animation, []string{".gif", ".png", ".apng"}},
		{"output.history", o.History, []string{".csv", Stdout}},
		{"output.probes", o.probesFile(), []string{".csv"}},
		{"output.trace", o.Trace, []string{".json"}},
		{"output.report", o.Report, []string{".json", Stdout}},
	}
	for i, a := range o.Arrays() {
		if o.Field != "" && !o.OneFile() {
			all = slices.Insert(all, 1+i, OutputFile{a.key, o.ArrayFile(a.Name), []string{".npy", ".zarr"}})
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

// maxContours is more than a picture has room for.
const maxContours = 100

// maxOutputName leaves room for what the names of arrays and of runs of a study add.
const maxOutputName = 120

func (v *validator) output(o Output) {
	if o.Dir == "" {
		v.fault(`output.dir "": must be a directory ("." for the current one)`)
	}
	v.oneOf("output.picture_scale", o.PictureScale, "auto", "linear", "log", "sqrt")
	if o.Contours < 0 || o.Contours > maxContours {
		v.fault("output.contours %d: 0 (none) to %d are allowed", o.Contours, maxContours)
	}
	for _, f := range o.Files() {
		switch {
		case strings.ContainsAny(f.Name, `/\`) || f.Name == "." || f.Name == "..":
			v.fault("%s %q: must be a plain file name; output.dir says where", f.Key, f.Name)
		case len(f.Name) > maxOutputName:
			v.fault("%s: a name of %d bytes; at most %d are allowed", f.Key, len(f.Name), maxOutputName)
		case f.Name == Stdout && slices.Contains(f.extensions, Stdout):
		case !slices.Contains(f.extensions, strings.ToLower(filepath.Ext(f.Name))):
			v.fault("%s %q: the name has to end in %s", f.Key, f.Name, alternatives(f.extensions))
		}
	}
	if arrays := o.Arrays(); arrays != nil && o.Field == "" {
		v.fault("%s true: output.field has to name a file; the arrays get names like it", arrays[0].key)
	}
	v.series(o)
	if o.Trace != "" && o.Trace == o.Report {
		v.fault("output.trace %q: output.report has that name", o.Trace)
	}
	v.animation(o)
	if o.History == Stdout && o.Report == Stdout {
		v.fault("output.report %q: output.history goes to standard output already", o.Report)
	}
}

// alternatives returns "a, b or c"; Stdout comes last.
func alternatives(words []string) string {
	last := len(words) - 1
	if words[last] == Stdout {
		return alternatives(words[:last]) + `, or be "-" for standard output`
	}
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
