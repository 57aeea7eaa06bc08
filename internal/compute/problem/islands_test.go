package problem

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jacobi/configs"
)

// surveyIn surveys p in stripes of the given numbers of rows, as ranks do, and takes the islands that they find.
func surveyIn(t *testing.T, p *Problem, stripes ...int) *Islands {
	t.Helper()
	lo := p.Mesh().Interior().Lo
	var own, sent []Survey
	for _, n := range stripes {
		s, err := p.Survey(t.Context(), lo, lo+n)
		if err != nil {
			t.Fatal(err)
		}
		lo += n
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var told Survey
		if err := json.Unmarshal(b, &told); err != nil {
			t.Fatal(err)
		}
		own, sent = append(own, s), append(sent, told)
	}
	v, err := p.UniteSurveys(sent)
	if err != nil {
		t.Fatalf("%+v: %v", sent, err)
	}
	var data []byte
	for rank := range own {
		data = append(data, own[rank].Patches(v, rank)...)
	}
	if err := p.TakeIslands(v, data); err != nil {
		t.Fatal(err)
	}
	return v
}

// points draws the points of p: '#' outside the material or left out, '0' kept at 0, '.' solved.
func points(t *testing.T, p *Problem) (rows []string) {
	t.Helper()
	n := p.Mesh().NX
	fixed, outside := make([]bool, n), make([]bool, n)
	for iy := range p.Mesh().NY {
		if err := p.FixedRow(iy, fixed); err != nil {
			t.Fatal(err)
		}
		if err := p.OutsideRow(iy, outside); err != nil {
			t.Fatal(err)
		}
		row := ""
		for ix := range n {
			switch {
			case outside[ix]:
				row += "#"
			case fixed[ix]:
				row += "0"
			default:
				row += "."
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// coefficientOf is the coefficient that is 1 at the dots of rows, and 0 elsewhere.
func coefficientOf(rows ...string) string {
	text := "0"
	for iy, row := range rows {
		for ix, c := range row {
			if c == '.' {
				text += fmt.Sprintf(" + (ix == %d and iy == %d ? 1 : 0)", ix, iy)
			}
		}
	}
	return text
}

// A spiral is one part only with its last row, whichever rank has that; parts may meet across periodic sides.
var islands = []struct {
	name  string
	def   configs.Problem
	rows  []string
	want  []string
	tally Tally // what becomes of the parts
}{
	{"a spiral, and a point in it", configs.Problem{Left: "neumann(0)"}, []string{
		"#########",
		"#.......#",
		"#.#####.#",
		"#.#.#.#.#",
		"#.###.#.#",
		"#.....#..",
		"#########",
	}, []string{
		"#########",
		"#.......#",
		"#.#####.#",
		"#.###.#.#",
		"#.###.#.#",
		"#.....#..",
		"#########",
	}, Tally{Held: true, Idle: [2]Count{{1, 1}}, Touched: 2}},
	{"a ring around a ring", configs.Problem{}, []string{
		".........",
		"..######.",
		"..#....#.",
		"..#.##.#.",
		"..#....#.",
		"..######.",
		".........",
	}, []string{
		".........",
		"..######.",
		"..######.",
		"..######.",
		"..######.",
		"..######.",
		".........",
	}, Tally{Held: true, Idle: [2]Count{{1, 10}}, Touched: 13, Joined: 4}},
	{"across periodic sides", configs.Problem{Left: "periodic", Right: "periodic", Top: "periodic", Bottom: "periodic",
		Fixed: "ix == 4 and iy == 4"}, []string{
		"########",
		"##.##.##",
		"#..##..#",
		"##.#.#.#",
		"####.###",
		"##.#.###",
		"########",
	}, []string{
		"####.###",
		"########",
		"########",
		"####.###",
		"####0###",
		"####.###",
		"########",
	}, Tally{Held: true, Idle: [2]Count{{1, 9}}}},
	{"screening", configs.Problem{Screening: "1e-6", Initial: "7", Top: "1"}, []string{
		"........",
		".####...",
		".#..####",
		".##..#.#",
		".#######",
		"........",
	}, []string{
		"........",
		".####...",
		".#00####",
		".##00#0#",
		".#######",
		"........",
	}, Tally{Held: true, Idle: [2]Count{{}, {2, 5}}, Touched: 6}},
	{"screening alone", configs.Problem{Screening: "1", Left: "neumann(0)", Right: "neumann(0)", Top: "neumann(0)",
		Bottom: "neumann(0)"}, []string{"...#", "..#.", ".#.."}, []string{"...#", "..#.", ".#.."},
		Tally{Idle: [2]Count{{}, {2, 9}}}},
}

func TestIslands(t *testing.T) {
	for _, c := range islands {
		c.def.Coefficient = coefficientOf(c.rows...)
		ny := len(c.rows)
		cfg := config(len(c.rows[0]), ny, "float64", c.def)
		inner := open(t, cfg).Mesh().Interior().Rows()
		for _, stripes := range [][]int{{inner}, {1, inner - 1}, {inner - 1, 1}, {1, 1, inner - 2}, {1, 0, inner - 1},
			slices.Repeat([]int{1}, inner)} {
			p := open(t, cfg)
			v := surveyIn(t, p, stripes...)
			if got := points(t, p); !slices.Equal(got, c.want) {
				t.Errorf("%s, stripes %v:\n%s\nwant\n%s", c.name, stripes, strings.Join(got, "\n"),
					strings.Join(c.want, "\n"))
			}
			v.first = nil
			if v.weak = nil; !reflect.DeepEqual(v.Tally, c.tally) {
				t.Errorf("%s, stripes %v: %+v, want %+v", c.name, stripes, v.Tally, c.tally)
			}
		}
		p := open(t, cfg)
		if err := p.FindIslands(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := points(t, p); !slices.Equal(got, c.want) {
			t.Errorf("%s, alone:\n%s", c.name, strings.Join(got, "\n"))
		}
		for iy, row := range field(t, p) {
			for ix, v := range row {
				if v != 0 && c.want[iy][ix] != '.' && c.name != "across periodic sides" {
					t.Errorf("%s: row %d, column %d is %v", c.name, iy, ix, v)
				}
			}
		}
	}
}

// Parts that cannot grow any more, or that are held, are forgotten meanwhile, which changes nothing in what is found.
func TestForgottenParts(t *testing.T) {
	for _, chess := range []configs.Problem{
		{Coefficient: "mod(ix + iy, 2) == 0 and (ix > 1 or iy > 1) ? 0 : 1"},
		{Coefficient: "mod(ix, 3) == 2 or mod(iy, 7) > 4 ? 0 : 1", Screening: "1", Source: "iy < 30 ? 0 : 1"},
		{Coefficient: "mod(ix, 3) == 2 or mod(iy, 7) > 4 ? 0 : 1", Screening: "iy > 40 ? 1 : 0"},
	} {
		p := open(t, config(65, 65, "float64", chess))
		var tallies [3]Tally
		var driven [3][]Part
		var patches [3][]byte
		for i := range tallies {
			found := &parts{keep: i < 2}
			for iy := 1; iy < 64; iy++ {
				row, err := p.take(iy).survey(iy, true)
				if err != nil {
					t.Fatal(err)
				}
				if found.add(row, p.mesh, true); i > 0 {
					found.forget()
				}
			}
			if n := len(found.list); i == 2 && n > 2*65 {
				t.Errorf("%s: %d parts are remembered", chess.Coefficient, n)
			}
			s := Survey{found: found, Any: true}
			s.end(false, p.leastHold())
			v, err := p.UniteSurveys([]Survey{s})
			if err != nil {
				t.Fatal(err)
			}
			v.first, v.weak = nil, nil
			tallies[i], driven[i], patches[i] = v.Tally, v.Driven, s.Patches(v, 0)
		}
		for i := range tallies[1:] {
			if !reflect.DeepEqual(tallies[i], tallies[0]) || !slices.Equal(driven[i], driven[0]) {
				t.Errorf("%s: %+v with %v, and %+v with %v", chess.Coefficient, tallies[0], driven[0], tallies[i],
					driven[i])
			}
		}
		if !slices.Equal(patches[0], patches[1]) {
			t.Errorf("%s: they lie elsewhere", chess.Coefficient)
		}
	}
}
