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
			if field.Tag.Get("mapstructure") == "-" {
				continue
			}
			k := key{
				name:  section.Tag.Get("mapstructure") + "." + field.Tag.Get("mapstructure"),
				index: append([]int{s}, field.Index...),
			}
			if field.Type == reflect.TypeFor[Direct]() {
				for _, leaf := range reflect.VisibleFields(field.Type) {
					list = append(list, key{
						name:  k.name + "." + leaf.Tag.Get("mapstructure"),
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
	switch v := k.value(c).(type) {
	case float64:
		if k.kind == length {
			return formatLength(v)
		}
		return formatFloat(v)
	case int:
		if k.kind == depth {
			return formatDepth(v)
		}
		return strconv.Itoa(v)
	default:
		return fmt.Sprint(v)
	}
}

// convert converts a value from a source to the type of the field. The error says which values are allowed.
func (k key) convert(raw any) (any, error) {
	if raw == nil {
		return nil, fmt.Errorf("the key has no value: leave it out or give one%s", k.emptyHint())
	}
	if s, ok := raw.(string); ok && (!utf8.ValidString(s) || strings.ContainsRune(s, 0)) {
		return nil, fmt.Errorf("must be text in UTF-8 without zero bytes")
	}
	if s, ok := raw.(string); ok && vanishes(s) && (k.kind == number || k.kind == length || k.kind == expression) {
		return nil, errors.New("it " + leastNumber)
	}
	switch k.kind {
	case integer:
		return k.integer(raw)
	case number:
		if f, ok := toFloat(raw); ok {
			return f, nil
		}
		return nil, notNumber(raw, mustNumber)
	case boolean:
		if b, ok := raw.(bool); ok {
			return b, nil
		}
		if raw == "true" || raw == "false" {
			return raw == "true", nil
		}
		return nil, fmt.Errorf("must be true or false")
	case duration:
		if s, ok := raw.(string); ok {
			if d, err := time.ParseDuration(s); err == nil {
				return d, nil
			}
		}
		return nil, fmt.Errorf("must be a duration with its unit, such as 30s or 2m")
	case depth:
		if raw == "auto" {
			return 0, nil
		}
		if n, ok := toInt(raw); ok && n >= 1 {
			return n, nil
		}
		return nil, fmt.Errorf("must be auto or an integer of at least 1")
	case length:
		if raw == "auto" {
			return 0.0, nil
		}
		if f, ok := toFloat(raw); ok && f > 0 {
			return f, nil
		}
		return nil, errors.New("must be auto or a number above 0")
	case interval:
		return k.interval(raw)
	case colours:
		return coloursText(raw)
	case expression:
		if f, ok := toFloat(raw); ok && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return formatFloat(f), nil
		}
		if b, ok := raw.(bool); ok { // a condition, as in text
			return strconv.FormatBool(b), nil
		}
	}
	if s, ok := raw.(string); ok {
		return s, nil
	}
	if k.kind == expression {
		return nil, fmt.Errorf("must be a number or text")
	}
	return nil, fmt.Errorf("must be text; put it in quotes")
}

func (k key) emptyHint() string {
	if k.kind == colours {
		return `; a colour stands in quotes, since # begins a comment`
	}
	if k.kind == text || k.kind == expression || k.kind == interval {
		return ` ("" for none)`
	}
	return ""
}

// maxExact bounds the integers that a float64 represents exactly, by their magnitude.
const maxExact = 1 << 53

// integer converts raw to an int. Its errors distinguish a value out of range from one that is not an integer.
func (k key) integer(raw any) (any, error) {
	if n, ok := toInt(raw); ok {
		return n, nil
	}
	f, ok := toFloat(raw)
	switch {
	case !ok || f != math.Trunc(f) || math.IsInf(f, 0):
		return nil, notNumber(raw, mustInteger)
	case math.Abs(f) < math.MaxInt64:
		return nil, fmt.Errorf("an integer beyond %d has to be written in digits", int64(maxExact))
	}
	low, high := k.bounds()
	return nil, fmt.Errorf("%d to %d are allowed", low, high)
}

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

// toInt accepts an integer in all forms of files and text, such as 1e4.
func toInt(raw any) (int, bool) {
	switch v := raw.(type) {
	case int:
		return v, true
	case int64:
		return int(v), true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= maxExact {
			return int(v), true
		}
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			return n, true
		}
		if f, ok := toFloat(v); ok {
			return toInt(f)
		}
	}
	return 0, false
}

func toFloat(raw any) (float64, bool) {
	switch v := raw.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	case string:
		// ParseFloat would also accept hexadecimal and underscored forms.
		if strings.ContainsAny(v, "xX_") {
			return 0, false
		}
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func formatDepth(n int) string {
	if n == 0 {
		return "auto"
	}
	return strconv.Itoa(n)
}

func formatLength(f float64) string {
	if f == 0 {
		return "auto"
	}
	return formatFloat(f)
}
