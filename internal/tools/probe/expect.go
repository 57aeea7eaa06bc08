package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
)

// maxExpect bounds the size of a file of bounds, in bytes.
const maxExpect = 1 << 20

// Bounds are the bounds of figures by name. A "*" in a name stands for any letters.
type Bounds map[string]Bound

// Bound bounds a figure. In JSON it is a number, the least value, or an object.
type Bound struct {
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bound) UnmarshalJSON(data []byte) error {
	var least float64
	if json.Unmarshal(data, &least) == nil {
		b.Min = &least
		return nil
	}
	type plain Bound // without this method
	var p plain
	if err := json.Unmarshal(data, &p); err != nil || p.Min == nil && p.Max == nil {
		return fmt.Errorf(`%s: must be a number, or {"min": number, "max": number}`, show.Cut(string(data), 40))
	}
	*b = Bound(p)
	return nil
}

// ReadBounds reads a file of bounds.
func ReadBounds(file string) (Bounds, error) {
	data, err := regular.ReadFile(file, maxExpect)
	if err != nil {
		return nil, err
	}
	var b Bounds
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(b) == 0 {
		return nil, fmt.Errorf(`%s: it has no bounds; wanted is {"copies.gpu*.to_device.pinned": 50e9}`, file)
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, err := path.Match(name, ""); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, name, err)
		}
	}
	return b, nil
}

// Miss is a bound that does not hold.
type Miss struct {
	Bound string  `json:"bound"` // its name
	Host  string  `json:"host,omitempty"`
	Why   string  `json:"why"`
	Value float64 `json:"value"`
}

// Check returns the bounds that do not hold, in the order of their names. A bound that no figure meets does not hold.
func (b Bounds) Check(reports []Report) (misses []Miss) {
	for _, name := range slices.Sorted(maps.Keys(b)) {
		met := false
		for _, r := range reports {
			for _, f := range r.Figures {
				if ok, err := path.Match(name, f.Name); err != nil || !ok {
					continue
				}
				met = true
				if why := b[name].broken(f); why != "" {
					misses = append(misses, Miss{Bound: name, Host: r.Host, Value: f.Value, Why: why})
				}
			}
		}
		if !met {
			misses = append(misses, Miss{Bound: name, Why: name + ": no part measured it"})
		}
	}
	return misses
}

// broken says why f is out of bounds; "" if it is not.
func (b Bound) broken(f Figure) string {
	if b.Min != nil && !(f.Value >= *b.Min) {
		return fmt.Sprintf("%s is %s, at least %s was expected", f.Name, inUnit(f.Value, f.Unit),
			inUnit(*b.Min, f.Unit))
	}
	if b.Max != nil && !(f.Value <= *b.Max) {
		return fmt.Sprintf("%s is %s, at most %s was expected", f.Name, inUnit(f.Value, f.Unit),
			inUnit(*b.Max, f.Unit))
	}
	return ""
}

// ErrFailed reports a probe in which a part failed or a bound did not hold. What was wrong has been printed.
var ErrFailed = errors.New("the probe failed")
