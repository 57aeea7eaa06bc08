package configs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"jacobi/internal/base/show"
	"jacobi/internal/base/suggest"
)

// kind is the kind of values that a key takes: that of its tag, or else that of its type.
type kind string

const (
	text       kind = "string"
	integer    kind = "int"
	number     kind = "float64"
	boolean    kind = "bool"
	duration   kind = "Duration"
	interval   kind = "Interval"   // sweeps or a duration
	depth      kind = "depth"      // an integer >= 1, or auto
	length     kind = "length"     // a number, or auto
	expression kind = "expression" // text, or a number, which becomes its shortest text
	colours    kind = "colours"    // text, or a section of colours, which becomes text
	regions    kind = "regions"    // the same of regions
	filePath   kind = "path"       // of a file; empty: none
)

// key is one leaf of Config: section.name, or section.part.name.
type key struct {
	name      string
	kind      kind
	index     []int    // for reflect.Value.FieldByIndex
	words     []string // that are allowed; empty: any
	low, high int      // bounds of an integer
}

// keys returns the leaves of Config in the order of their declarations. Callers do not change the list.
var keys = sync.OnceValue(func() []key { return leaves(reflect.TypeFor[Config](), "", nil) })

func leaves(section reflect.Type, prefix string, index []int) (list []key) {
	for _, field := range reflect.VisibleFields(section) {
		tag := field.Tag
		name, at := prefix+tag.Get("key"), slices.Concat(index, field.Index)
		switch {
		case tag.Get("key") == "-":
		case field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[Interval]():
			list = append(list, leaves(field.Type, name+".", at)...)
		default:
			low, _ := strconv.Atoi(tag.Get("min")) // 0 where there is no tag
			high, err := strconv.Atoi(tag.Get("max"))
			if err != nil {
				high = math.MaxInt
			}
			list = append(list, key{name, kind(cmp.Or(tag.Get("kind"), field.Type.Name())), at,
				strings.Fields(tag.Get("allowed")), low, high})
		}
	}
	return list
}

// keyOf returns the key of a name.
func keyOf(name string) (key, bool) {
	i := slices.IndexFunc(keys(), func(k key) bool { return k.name == name })
	if i < 0 {
		return key{}, false
	}
	return keys()[i], true
}

// set sets the value of k in c. v has the type of the field.
func (k key) set(c *Config, v any) {
	reflect.ValueOf(c).Elem().FieldByIndex(k.index).Set(reflect.ValueOf(v))
}

// value returns the value of k in c.
func (k key) value(c Config) any {
	return reflect.ValueOf(c).FieldByIndex(k.index).Interface()
}

// text returns the value of k in c as text for --set or the environment.
func (k key) text(c Config) string {
	if f, ok := k.written(c).(float64); ok {
		return formatFloat(f)
	}
	return fmt.Sprint(k.written(c))
}

// ANumber is what numbers must be. One that a float64 rounds to 0, or that is too large for it, is none.
const ANumber = "a number that a float64 holds"

// convert converts a value from a source to the type of the field: text, a number or a truth value, as such or as text,
// and for colours and regions a section. The error says what is allowed.
func (k key) convert(raw any) (any, error) {
	if raw == nil {
		return nil, errors.New("must have a value")
	}
	switch k.kind {
	case colours:
		return sectionText(raw, errors.New(`must be colours, such as "#b87333": {name: strip, value: 1}`))
	case regions:
		return sectionText(raw, errors.New(`must be regions, such as strip: {where: "y < 0.1", value: 1}`))
	}
	text, ok := textOf(raw)
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, errors.New("must be text in UTF-8 without zero bytes")
	}
	if ok {
		if v, ok := k.parse(text); ok {
			return v, nil
		}
	}
	return nil, errors.New("must be " + k.allowed())
}

// parse is convert for text.
func (k key) parse(text string) (v any, ok bool) {
	switch k.kind {
	case integer:
		return toInt(text)
	case number:
		return Number(text)
	case boolean:
		return text == "true", text == "true" || text == "false"
	case duration:
		d, err := time.ParseDuration(text)
		return d, err == nil
	case depth:
		n, ok := toInt(text)
		return n, ok && n >= 1 || text == "auto"
	case length:
		f, ok := Number(text)
		return f, ok && f > 0 || text == "auto"
	case interval:
		return k.interval(text)
	case expression:
		if f, ok := Number(text); ok {
			return formatFloat(f), true
		}
		_, err := strconv.ParseFloat(text, 64) // takes Inf, and 1e-400 for 0
		return text, errors.Is(err, strconv.ErrSyntax)
	}
	return text, true
}

// allowed says what parse takes.
func (k key) allowed() string {
	switch k.kind {
	case integer:
		return fmt.Sprintf("an integer, %d to %d", k.low, k.high)
	case number:
		return ANumber
	case boolean:
		return "true or false"
	case duration:
		return "a duration with its unit, such as 30s or 2m"
	case depth:
		return "auto or an integer of at least 1"
	case length:
		return "auto or a number above 0"
	case interval:
		if k.timed() {
			return `100, "100 sweeps", "5 cycles" or a duration, such as 10m`
		}
		return `100, "100 sweeps" or "5 cycles"`
	case expression:
		return "an expression or " + ANumber
	}
	return "text"
}

// timed reports whether an interval may be a duration.
func (k key) timed() bool { return strings.HasPrefix(k.name, "checkpoint.") }

// textOf returns a scalar of a source as text.
func textOf(raw any) (text string, ok bool) {
	switch v := raw.(type) {
	case string:
		return v, true
	case float64:
		return formatFloat(v), true
	case bool, int, int64:
		return fmt.Sprint(v), true
	}
	return "", false
}

// toInt reads an integer in all its forms, such as 1e4.
func toInt(text string) (int, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return n, true
	}
	f, ok := Number(text)
	return int(f), ok && f == math.Trunc(f) && math.Abs(f) < math.MaxInt64
}

// Number reads a decimal number.
func Number(text string) (float64, bool) {
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && f-f == 0 && !vanishes(text) && !strings.ContainsAny(text, "xX_")
}

// vanishes reports whether text is a number other than 0 that rounds to 0. ParseFloat makes 0 of it without an error.
func vanishes(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return err == nil && f == 0 && strings.ContainsAny(mantissa, "123456789")
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// unknown returns the error for name, which is no key, with the nearest one, if one is near.
func unknown(name, source string) error {
	hint := "launcher --dry-run prints all keys"
	if best, ok := Nearest(name); ok && best != name { // which is a section where no value can be
		hint = "did you mean " + best + "?"
	}
	return fmt.Errorf("unknown key %s (%s): %s", show.Text(name), source, hint)
}

// CheckName returns an error if name, which source gives, is no key.
func CheckName(name, source string) error {
	if _, ok := keyOf(name); ok {
		return nil
	}
	return unknown(name, source)
}

// Nearest returns the key or section that name most likely means: the right leaf in another section is nearer than
// another leaf. ok is false if none is near.
func Nearest(name string) (best string, ok bool) {
	leaf := func(name string) string { return name[1+strings.LastIndexByte(name, '.'):] }
	low := math.MaxInt
	try := func(known string) {
		if d := min(suggest.Distance(name, known), 1+suggest.Distance(leaf(name), leaf(known))); d < low {
			best, low = known, d
		}
	}
	for _, k := range keys() {
		try(k.name)
	}
	for _, k := range keys() {
		section, _, _ := strings.Cut(k.name, ".")
		try(section)
	}
	return best, suggest.Near(leaf(name), low)
}

// Names returns all keys in the form that --set takes.
func Names() (names []string) {
	for _, k := range keys() {
		names = append(names, k.name)
	}
	return names
}

func isSection(name string) bool {
	return slices.ContainsFunc(keys(), func(k key) bool { return strings.HasPrefix(k.name, name+".") })
}

// Defaults returns the defaults of a key as text for --set, of gtc2019 and of a problem of the user's own; "" if they
// are empty, or if there is no such key.
func Defaults(name string) (benchmark, own string) {
	k, ok := keyOf(name)
	if !ok {
		return "", ""
	}
	c := Default()
	c.Problem.Preset, c.Solver.Method = "", Auto
	return k.text(Default()), k.text(c.resolve(map[string]bool{"problem.preset": true}))
}
