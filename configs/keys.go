package configs

import (
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
)

// kind is the kind of values that a key takes.
type kind uint8

const (
	text kind = iota
	integer
	number
	boolean
	duration
	depth      // an integer >= 1, or auto
	length     // a number, or auto
	expression // text, or a number, which becomes its shortest text
	interval   // sweeps or a duration
	colours    // text, or a section of colours, which becomes text
)

// key is one leaf of Config: section.name, or section.part.name.
type key struct {
	name  string
	kind  kind
	index []int // for reflect.Value.FieldByIndex
}

// keys returns the leaves of Config in the order of their declarations. Callers do not change the list.
var keys = sync.OnceValue(listKeys)

func listKeys() []key {
	var list []key
	root := reflect.TypeFor[Config]()
	for s := range root.NumField() {
		section := root.Field(s)
		for _, field := range reflect.VisibleFields(section.Type) {
			if field.Tag.Get("key") == "-" {
				continue
			}
			k := key{
				name:  section.Tag.Get("key") + "." + field.Tag.Get("key"),
				index: append([]int{s}, field.Index...),
			}
			if field.Type == reflect.TypeFor[Direct]() {
				for _, leaf := range reflect.VisibleFields(field.Type) {
					list = append(list, key{
						name:  k.name + "." + leaf.Tag.Get("key"),
						index: append(slices.Clone(k.index), leaf.Index...),
					})
				}
				continue
			}
			switch {
			case k.name == "halo.depth":
				k.kind = depth
			case k.name == "grid.height":
				k.kind = length
			case field.Type == reflect.TypeFor[Interval]():
				k.kind = interval
			case field.Type == reflect.TypeFor[time.Duration]():
				k.kind = duration
			case field.Type.Kind() == reflect.Int:
				k.kind = integer
			case field.Type.Kind() == reflect.Float64:
				k.kind = number
			case field.Type.Kind() == reflect.Bool:
				k.kind = boolean
			case k.name == "problem.colours":
				k.kind = colours
			case section.Name == "Problem" && field.Name != "Preset":
				k.kind = expression
			}
			list = append(list, k)
		}
	}
	return list
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
// and for colours a section. The error says what is allowed.
func (k key) convert(raw any) (any, error) {
	if raw == nil {
		return nil, errors.New("must have a value; a key that is left out has its default")
	}
	if k.kind == colours {
		return coloursText(raw)
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
		low, high := k.bounds()
		return fmt.Sprintf("an integer, %d to %d", low, high)
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

// bounds returns the least and the largest value of an integer.
func (k key) bounds() (low, high int) {
	switch k.name {
	case "grid.nx", "grid.ny":
		return minSide, maxSide
	case "run.ranks", "solver.max_iterations", "solver.norm_every", "checkpoint.keep":
		return 1, math.MaxInt
	case "nats.port":
		return 0, math.MaxUint16
	}
	return 0, math.MaxInt
}

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
