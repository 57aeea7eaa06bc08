package configs

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

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
