package configs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"jacobi/solver"
)

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

// ProbesInterval returns the interval of the values of the probes.
func (o Output) ProbesInterval() Interval { return cmp.Or(o.ProbesEvery, o.Every) }

// shortName is the pattern of the names of probes, and of the regions of a drawing.
const shortName = `[A-Za-z_][A-Za-z0-9_.-]{0,63}`

var (
	probeItem  = regexp.MustCompile(`^(` + shortName + `)\s*=\s*(.*)$`)
	probeShape = regexp.MustCompile(`^([(\[][^)\]]*[)\]])(?:\s*\.\.\s*([(\[][^)\]]*[)\]])(?:\s*/\s*(\d{1,9}))?)?$`)
)

var errProbe = errors.New("must be NAME=(x,y) or NAME=[ix,iy], or a line such as NAME=(0,0.5)..(1,0.5)/9, with " +
	"semicolons between them")

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
	m := probeItem.FindStringSubmatch(item)
	if m == nil {
		return Probe{}, errProbe
	}
	s := probeShape.FindStringSubmatch(m[2])
	if s == nil {
		return Probe{}, errProbe
	}
	from, err := parsePoint(s[1], mesh)
	if err != nil {
		return Probe{}, err
	}
	if s[2] == "" {
		return Probe{m[1], []MeshPoint{from}}, nil
	}
	to, err := parsePoint(s[2], mesh)
	if err != nil {
		return Probe{}, err
	}
	most := max(distance(from.IX, to.IX), distance(from.IY, to.IY)) + 1
	points := min(most, maxProbed+1)
	if s[3] != "" {
		if points, _ = strconv.Atoi(s[3]); points < 2 || points > most {
			return Probe{}, fmt.Errorf("%s points: the line has 2 to %d", s[3], most)
		}
	}
	return Probe{m[1], line(from, to, points)}, nil
}

func distance(a, b int) int { return max(a-b, b-a) }

// line returns points of the line, both ends included. Each is the nearest one to its place.
func line(from, to MeshPoint, points int) (all []MeshPoint) {
	between := func(a, b, i int) int { // the nearest integer to a + (b-a) i/(points-1); halves go up
		n := 2 * (points - 1)
		return a + solver.FloorDiv(2*(b-a)*i+(points-1), n)
	}
	for i := range min(points, maxProbed+1) {
		if points == 1 {
			return []MeshPoint{from}
		}
		all = append(all, MeshPoint{between(from.IX, to.IX, i), between(from.IY, to.IY, i)})
	}
	return all
}

// parsePoint reads (x,y) or [ix,iy].
func parsePoint(text string, m solver.Mesh) (p MeshPoint, err error) {
	first, second, found := strings.Cut(text[1:len(text)-1], ",")
	if !found || (text[0] == '(') != (text[len(text)-1] == ')') {
		return p, errProbe
	}
	first, second = strings.TrimSpace(first), strings.TrimSpace(second)
	if text[0] == '[' {
		ix, okX := index(first, m.NX)
		iy, okY := index(second, m.NY)
		if !okX || !okY {
			return p, fmt.Errorf("%s: ix must be from 0 to %d and iy from 0 to %d", text, m.NX-1, m.NY-1)
		}
		return MeshPoint{ix, iy}, nil
	}
	x, okX := Number(first)
	y, okY := Number(second)
	if !okX || !okY || !(x >= 0 && x <= 1) || !(y >= 0 && y <= 1) {
		return p, fmt.Errorf("%s: x and y must be from 0 to 1", text)
	}
	nx, ny := solver.Intervals(m.NX, m.Walls.Left), solver.Intervals(m.NY, m.Walls.Top)
	return MeshPoint{int(math.Round(float64(x * float64(nx)))), int(math.Round(float64(y * float64(ny))))}, nil
}

func index(text string, n int) (int, bool) {
	i, err := strconv.Atoi(text)
	return i, err == nil && i >= 0 && i < n
}

func (v *validator) probes(c Config) {
	o := c.Output
	if o.probesFile() == "" {
		return
	}
	walls, _ := c.Problem.Walls(c.Grid.DType) // problem reports the error
	if _, err := ParseProbes(o.Probes, solver.Mesh{NX: c.Grid.NX, NY: c.Grid.NY, Walls: walls}); err != nil {
		v.fault("output.probes %w", err)
	}
	switch every := o.ProbesInterval(); {
	case every == Interval{}:
		v.fault("output.probes %q: output.probes_every or output.every has to say when", o.Probes)
	case o.History == ProbesFile:
		v.fault("output.history %q: output.probes writes a file of this name", o.History)
	}
}
