package checkpoint

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/solver"
	"jacobi/solver/methods"
)

// sample returns a valid manifest.
func sample() Manifest {
	m := Manifest{Serial: 7, Sweeps: 3,
		Problem: Problem{Fields: map[string]string{"grid.nx": "5", "problem.left": "sin(\"<x>\")"}},
		Mesh:    solver.Mesh{NX: 5, NY: 20, DType: solver.Float64, Walls: solver.WrapRows(true)}, Magnitude: -2,
		RunID:   "run",
		Program: "v1",
		Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	m.Format = manifestFormat
	m.Norms = m.normsPart()
	m.Norms.Sum = "00000000"
	for r, s := range []solver.Stripe{{Lo: 1, Hi: 8}, {Lo: 8, Hi: 19}} {
		m.Parts = append(m.Parts, Part{File: partFile(r), Lo: s.Lo, Hi: s.Hi, Bytes: m.rowsBytes(s.Lo, s.Hi),
			Sum: "0123abcd"})
	}
	return m
}

func encoded(t testing.TB, m Manifest) []byte {
	t.Helper()
	b, err := m.Encode()
	must(t, err)
	return b
}

// Norms may be several sweeps apart.
func TestManifestWithANormStride(t *testing.T) {
	for sweeps, norms := range map[int]int{1: 1, 17: 1, 18: 2, 35: 3} {
		m := sample()
		m.Sweeps, m.NormStride = sweeps, 17
		if m.Norms = m.normsPart(); m.Norms.Hi != norms {
			t.Errorf("%d sweeps have %d norms, want %d", sweeps, m.Norms.Hi, norms)
		}
		if got, err := DecodeManifest(encoded(t, m)); err != nil || got.NormStride != 17 {
			t.Errorf("%d sweeps: %+v, %v", sweeps, got, err)
		}
	}
}

// A manifest is read as it was written. Every changed, removed or added byte is detected.
func TestManifestFindsEveryDamage(t *testing.T) {
	good := encoded(t, sample())
	if m, err := DecodeManifest(good); err != nil || !bytes.Equal(encoded(t, m), good) || m.Parts[1].Hi != 19 {
		t.Errorf("%+v, %v", m, err)
	}
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			if m, err := DecodeManifest(bad); err == nil {
				t.Fatalf("bit %d of byte %d changed unseen: %+v", bit, i, m)
			}
		}
		if _, err := DecodeManifest(good[:i]); err == nil {
			t.Fatalf("the first %d bytes of %d were accepted", i, len(good))
		}
	}
	if _, err := DecodeManifest(append(bytes.Clone(good), ' ')); err == nil {
		t.Error("a byte was added unseen")
	}
}

// A manifest that no run could have written is refused even if its checksum is right.
func TestManifestRefusesWhatNoRunWrites(t *testing.T) {
	for _, c := range []struct {
		change func(*Manifest)
		want   string
	}{
		{func(m *Manifest) { m.Mesh.NX = 2 }, "mesh of 2 x 20"},
		{func(m *Manifest) { m.Mesh.DType = 5 }, "mesh of 5 x 20 DType(5)"},
		{func(m *Manifest) { m.Sweeps = 0 }, "serial 7, 0 sweeps"},
		{func(m *Manifest) { m.Serial = math.MaxInt }, "serial 9223372036854775807, 3 sweeps"},
		{func(m *Manifest) { m.Aggregates = 3 }, "aggregates after 3 of 3 cycles"},
		{func(m *Manifest) { m.Aggregates = -1 }, "aggregates after -1 of 3 cycles"},
		{func(m *Manifest) { m.Norms.Bytes++ }, "manifest: norms"},
		{func(m *Manifest) { m.Parts[0].File = "../x" }, "manifest: part 0"},
		{func(m *Manifest) { m.Parts[1].Lo = 7 }, "manifest: part 1"},
		{func(m *Manifest) { m.Parts[1].Bytes-- }, "manifest: part 1"},
		{func(m *Manifest) { m.Parts = m.Parts[:1] }, "the parts end at row 8, want 19"},
	} {
		m := sample()
		c.change(&m)
		if _, err := DecodeManifest(encoded(t, m)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func TestHeaderFindsEveryDamage(t *testing.T) {
	m := sample()
	for _, p := range append(m.Parts, m.Norms) {
		good := m.header(p).encode()
		if h, err := decodeHeader(good); err != nil || h != m.header(p) {
			t.Fatalf("%+v, %v", h, err)
		}
		for i := range good {
			for bit := range 8 {
				bad := bytes.Clone(good)
				bad[i] ^= 1 << bit
				if h, err := decodeHeader(bad); err == nil {
					t.Fatalf("bit %d of byte %d changed unseen: %+v", bit, i, h)
				}
			}
		}
	}
}

func TestCheckProblemNamesTheKeyOrTheFile(t *testing.T) {
	m := sample()
	fields := map[string]string{"grid.nx": "5", "problem.left": "0"}
	const want = `the checkpoint sets problem.left to "sin(\"<x>\")", this run to "0"`
	if err := m.CheckProblem(Problem{Fields: fields}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	fields["problem.left"] = "sin(\"<x>\")"
	if err := m.CheckProblem(Problem{Fields: fields}); err != nil {
		t.Error(err)
	}
	const file = `problem.source "f.npy"`
	p := Problem{Fields: fields, Contents: map[string]string{file: "1"}}
	if err := m.CheckProblem(p); err != nil {
		t.Errorf("a checkpoint without contents: %v", err)
	}
	m.Contents = map[string]string{file: "2"}
	const changed = file + ": the file has changed since the checkpoint was written"
	if err := m.CheckProblem(p); err == nil || err.Error() != changed {
		t.Errorf("%v, want %s", err, changed)
	}
	p.Contents[file] = "2"
	if err := m.CheckProblem(p); err != nil {
		t.Error(err)
	}
	const other = "the checkpoint is of a version of the program whose cycles give other bits"
	p.Cycles = 1
	if err := m.CheckProblem(p); err == nil || err.Error() != other {
		t.Errorf("%v, want %s", err, other)
	}
}

// Multigrid's arithmetic has a version, that of sweeps is the same for good.
func TestProblemHasTheVersionOfItsCycles(t *testing.T) {
	for method, want := range map[string]int{methods.Jacobi: 0, methods.Multigrid: 2} {
		c := configs.Default()
		c.Solver.Method = method
		if p, err := NewProblem(c, nil, 3); err != nil || p.Cycles != want || p.Areas != 3 {
			t.Errorf("%s: cycles %d, areas %d (%v), want %d, 3", method, p.Cycles, p.Areas, err, want)
		}
	}
}

// The decoder of manifests never panics, and it accepts only the output of Encode.
func FuzzManifest(f *testing.F) {
	f.Add(encoded(f, sample()))
	f.Add([]byte("{}"))
	f.Add([]byte(`{"format": "jacobi checkpoint 1", "parts": [{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeManifest(data)
		if err != nil {
			return
		}
		if again := encoded(t, m); !bytes.Equal(again, data) {
			t.Errorf("accepted\n%s\nwritten\n%s", data, again)
		}
	})
}

// The reader of a part never panics, and it accepts only the bytes that were written.
func FuzzPart(f *testing.F) {
	m := sample()
	payload := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, 200)[:m.Parts[1].Bytes-headerSize]
	var good bytes.Buffer
	sum, err := m.writePart(&good, m.Parts[1], payload)
	if err != nil {
		f.Fatal(err)
	}
	m.Parts[1].Sum = sum
	f.Add(good.Bytes())
	f.Add(good.Bytes()[:good.Len()-1])
	f.Add(good.Bytes()[:headerSize])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		err := m.verify(m.Parts[1], bytes.NewReader(data), int64(len(data)))
		if same := bytes.Equal(data, good.Bytes()); (err == nil) != same {
			t.Errorf("%d bytes, those written: %v; %v", len(data), same, err)
		}
		if len(data) >= headerSize {
			if h, err := decodeHeader(data[:headerSize]); err == nil && !bytes.Equal(h.encode(), data[:headerSize]) {
				t.Errorf("header %+v", h)
			}
		}
	})
}
