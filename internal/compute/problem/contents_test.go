package problem

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// Each file of a problem has an entry with its key and name, whose hash is another one where one value or one pixel is.
func TestContents(t *testing.T) {
	array := npyBytes(1, "<f8", "False", "(5, 4)", 20, solver.Float64)
	other := bytes.Clone(array)
	other[len(other)-6*8] ^= 1
	values := [2]string{writeFile(t, "a.npy", array), writeFile(t, "b.npy", other)}
	truths := npyBytes(1, "|b1", "False", "(5, 4)", 0, solver.Float64)
	truths = truths[:len(truths):len(truths)]
	masks := [2]string{writeFile(t, "a.npy", append(truths, make([]byte, 20)...)),
		writeFile(t, "b.npy", append(append(truths, make([]byte, 19)...), 1))}
	line := npyBytes(1, "<f4", "False", "(4,)", 4, solver.Float32)
	lines := [2]string{writeFile(t, "a.npy", line), writeFile(t, "b.npy", append(line[:len(line)-1:len(line)-1], 0))}
	grey := [2]string{pngFile(t, gray([]byte{0, 255, 255}, []byte{0, 255, 255})),
		pngFile(t, gray([]byte{0, 255, 255}, []byte{0, 0, 255}))}
	drawings := [2]string{pngFile(t, drawn("c.b", "..b")), pngFile(t, drawn("c.b", ".b."))}
	for _, c := range []struct {
		key   string
		files [2]string
		with  func(file string) configs.Problem
	}{
		{"problem.initial", values, func(f string) configs.Problem { return configs.Problem{Initial: f} }},
		{"problem.source", values, func(f string) configs.Problem { return configs.Problem{Source: f} }},
		{"problem.coefficient", values, func(f string) configs.Problem { return configs.Problem{Coefficient: f} }},
		{"problem.screening", values, func(f string) configs.Problem { return configs.Problem{Screening: f} }},
		{"problem.fixed", masks, func(f string) configs.Problem { return configs.Problem{Fixed: f} }},
		{"problem.fixed", grey, func(f string) configs.Problem { return configs.Problem{Fixed: f} }},
		{"problem.drawing", drawings, func(f string) configs.Problem {
			return configs.Problem{Drawing: f, Colours: copperAndBlue}
		}},
		{"problem.bottom", lines, func(f string) configs.Problem { return configs.Problem{Bottom: f} }},
	} {
		var hashes [2]string
		for i, file := range c.files {
			contents, err := open(t, config(4, 5, "float64", c.with(file))).Contents(t.Context())
			hashes[i] = contents[fmt.Sprintf("%s %q", c.key, file)]
			if err != nil || len(contents) != 1 || len(hashes[i]) != 16 {
				t.Errorf("%s: %v, %v", c.key, contents, err)
			}
		}
		if hashes[0] == hashes[1] {
			t.Errorf("%s: files that differ have the hash %s", c.key, hashes[0])
		}
	}
}

// The type of values counts, and their order in the file does not.
func TestContentsOfTypes(t *testing.T) {
	var hashes []string
	for _, c := range [][2]string{{"<f8", "False"}, {">f8", "False"}, {"<f8", "True"}} {
		file := writeFile(t, "a.npy", append(npyBytes(1, c[0], c[1], "(5, 4)", 0, solver.Float64),
			make([]byte, 160)...))
		contents, err := open(t, config(4, 5, "float64", configs.Problem{Source: file})).Contents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, hash := range contents {
			hashes = append(hashes, hash)
		}
	}
	if hashes[0] == hashes[1] || hashes[0] != hashes[2] {
		t.Errorf("hashes %v of <f8, >f8 and <f8 in Fortran order", hashes)
	}
}

const longRow = blockBytes / 8 // values of a row that is a block

// longFile writes an array of rows that are blocks to a file. Row changed has other values.
func longFile(t *testing.T, path, order string, rows, changed int) {
	t.Helper()
	data := npyBytes(1, "<f8", order, fmt.Sprintf("(%d, %d)", rows, longRow), 0, solver.Float64)
	head := len(data)
	data = append(data, make([]byte, 8*rows*longRow)...)
	if changed >= 0 && order == "False" {
		data[head+8*changed*longRow] = 1
	} else if changed >= 0 {
		data[head+8*changed] = 1
	}
	if err := os.WriteFile(path, data, 0o600); err != nil { // in place, as numpy.save writes
		t.Fatal(err)
	}
}

// A file that is written again while a run needs it is an error that names the key, the file and the row. Rows that
// were not changed can still be read.
func TestFileIsWrittenAgain(t *testing.T) {
	rows := kept() + 5
	for _, order := range []string{"False", "True"} {
		path := writeFile(t, "f.npy", nil)
		longFile(t, path, order, rows, -1)
		p := open(t, config(longRow, rows, "float64", configs.Problem{Source: path}))
		row := make([]byte, 8*longRow)
		for iy := 1; iy < rows; iy++ { // the first rows are not kept
			if err := p.ValueRow(iy, solver.Source, row); err != nil {
				t.Fatal(err)
			}
		}
		longFile(t, path, order, rows, 2)
		if err := p.ValueRow(1, solver.Source, row); err != nil {
			t.Errorf("a row that is as it was: %v", err)
		}
		want := `problem.source "` + path + `": row 2: the file was changed while the run needs it`
		if err := p.ValueRow(2, solver.Source, row); err == nil || err.Error() != want {
			t.Errorf("order %s: error %v, want %s", order, err, want)
		}
	}
}

// A problem keeps to the file that it has opened, whatever takes its name.
func TestFileIsReplaced(t *testing.T) {
	rows := kept() + 4
	path, other := writeFile(t, "f.npy", nil), writeFile(t, "g.npy", nil)
	longFile(t, path, "False", rows, -1)
	longFile(t, other, "False", rows, 2)
	p := open(t, config(longRow, rows, "float64", configs.Problem{Source: path}))
	before, err := p.Contents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	row := make([]byte, 8*longRow)
	if err := p.ValueRow(2, solver.Source, row); err != nil || !bytes.Equal(row, make([]byte, len(row))) {
		t.Errorf("the row is another one, or %v", err)
	}
	after, err := open(t, config(longRow, rows, "float64", configs.Problem{Source: path})).Contents(t.Context())
	if err != nil || before[fmt.Sprintf("problem.source %q", path)] == after[fmt.Sprintf("problem.source %q", path)] {
		t.Errorf("contents %v and %v, %v", before, after, err)
	}
}

// shares opens the problem of a file once for each rank, with change called before each is opened, and returns the
// problems and the shares of their ranks.
func shares(t *testing.T, path string, ranks, rows int, change func(rank int)) (all []*Problem, sums []Sums) {
	t.Helper()
	for rank := range ranks {
		change(rank)
		p := open(t, config(longRow, rows, "float64", configs.Problem{Source: path}))
		s, err := p.Share(t.Context(), rank, ranks)
		if err != nil {
			t.Fatal(err)
		}
		all, sums = append(all, p), append(sums, s)
	}
	return all, sums
}

// who names a rank.
func who(rank int) string { return fmt.Sprintf("rank %d", rank) }

// No rank needs to read all of a file, and the shares of all together have the hash of the file that was planned.
func TestUnite(t *testing.T) {
	const ranks, rows = 3, 7
	path := writeFile(t, "f.npy", nil)
	longFile(t, path, "False", rows, -1)
	planned, err := open(t, config(longRow, rows, "float64", configs.Problem{Source: path})).Contents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, sums := shares(t, path, ranks, rows, func(int) {})
	united, err := all[0].Unite(t.Context(), sums, planned, who)
	if err != nil {
		t.Fatal(err)
	}
	for rank, p := range all {
		if unread := p.inputs()[0].unread(0, rows); len(unread) != rows-len(sums[rank][p.inputs()[0].name])/8 {
			t.Errorf("rank %d has left rows %v", rank, unread)
		}
		if err := p.Adopt(united); err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
		if got, err := p.Contents(t.Context()); err != nil || !maps.Equal(got, planned) {
			t.Errorf("rank %d: contents %v, %v, want %v", rank, got, err, planned)
		}
	}
}

// A file that takes the place of the planned one before the first, the last or any other rank opens it is found, and
// the first rank that has read it is named.
func TestUniteFindsOtherFiles(t *testing.T) {
	const ranks, rows = 3, 7
	path := writeFile(t, "f.npy", nil)
	for changed := range ranks {
		longFile(t, path, "False", rows, -1)
		planned, err := open(t, config(longRow, rows, "float64", configs.Problem{Source: path})).Contents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all, sums := shares(t, path, ranks, rows, func(rank int) {
			if rank == changed {
				longFile(t, path+".new", "False", rows, 2*rank+1) // in the share of this rank
				if err := os.Rename(path+".new", path); err != nil {
					t.Fatal(err)
				}
			}
		})
		want := fmt.Sprintf("problem.source %q: rank 0 and rank %d read different files; a file must be the same for "+
			"all, and stay as it is", path, changed)
		if changed == 0 {
			want = fmt.Sprintf("problem.source %q: it is not the file with which the run was planned: it was changed "+
				"since then, or is another one for rank 0", path)
		}
		if _, err := all[0].Unite(t.Context(), sums, planned, who); err == nil || err.Error() != want {
			t.Errorf("changed before rank %d: error %v, want %s", changed, err, want)
		}
	}
}

// A rank that has read rows beside its share from another file than the others finds out when it learns the hashes.
func TestAdoptRefuses(t *testing.T) {
	const ranks, rows = 2, 6
	path := writeFile(t, "f.npy", nil)
	longFile(t, path, "False", rows, -1)
	all, sums := shares(t, path, ranks, rows, func(rank int) {
		if rank == 1 {
			longFile(t, path+".new", "False", rows, 2) // in the share of rank 0
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err := all[1].ValueRow(2, solver.Source, make([]byte, 8*longRow)); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("problem.source %q", path)
	united := Sums{name: slices.Concat(sums[0][name], sums[1][name])}
	if err := all[0].Adopt(united); err != nil {
		t.Error(err)
	}
	want := name + ": the file was changed while the run needs it"
	if err := all[1].Adopt(united); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	want = fmt.Sprintf("%s: 0 bytes of hashes, want %d", name, 8*rows)
	if err := all[0].Adopt(Sums{}); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
