package configs

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
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

// Trace says which part of a run output.trace shows. A pass is up to halo.depth sweeps. With multigrid, cycles stand
// for passes and for sweeps.
type Trace struct {
	Passes int `key:"passes"` // at each end of the run
	From   int `key:"from"`   // passes that begin with sweep From or a later one,
	To     int `key:"to"`     // and before sweep To; 0: to the end
}

// maxTracePasses bounds the memory of a rank for its part of the trace, and the size of the file.
const maxTracePasses = 10000

func (v *validator) trace(t Trace) {
	if t.Passes < 1 || t.Passes > maxTracePasses {
		v.fault("trace.passes %d: 1 to %d are allowed", t.Passes, maxTracePasses)
	}
	v.atLeast("trace.from", t.From, 0)
	v.atLeast("trace.to", t.To, 0)
	if t.To > 0 && t.To <= t.From {
		v.fault("trace.to %d: must be more than trace.from (%d), or 0 for the end of the run", t.To, t.From)
	}
}

// Series reports whether the run writes a series of fields.
func (o Output) Series() bool { return o.Every.Sweeps > 0 }

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

// AnimationInterval returns the interval of the frames of the animation.
func (o Output) AnimationInterval() Interval { return cmp.Or(o.AnimationEvery, o.Every) }

func (v *validator) animation(o Output) {
	switch {
	case o.Animation == "":
	case o.AnimationInterval() == Interval{}:
		v.fault("output.animation %q: output.animation_every or output.every has to say when", o.Animation)
	case o.Animation == o.Picture:
		v.fault("output.animation %q: output.picture has this name", o.Animation)
	}
}

func (v *validator) series(o Output) {
	switch {
	case !o.Series():
	case o.Field == "":
		v.fault("output.every %q: output.field has to name the files", o.Every)
	case len(o.Field)+len("-000000000") > maxOutputName:
		v.fault("output.field: a name of %d bytes; at most %d are allowed with output.every", len(o.Field),
			maxOutputName-len("-000000000"))
	}
}
