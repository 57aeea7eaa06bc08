package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The operator stands once in each language (docs/extending.md). The programs in bench/peers are what others would
// write.
var operatorFiles = []string{
	"bench/peers/jacobi_mpi.c",
	"bench/peers/jacobi_omp.c",
	"cuda/kernels/update.cuh",
	"internal/compute/cpu/kernel/operator.go",
	"internal/compute/reference/operator.go",
}

func TestOperatorStandsOnceInEachLanguage(t *testing.T) {
	var found []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == ".git" {
			return errorOr(err, fs.SkipDir)
		}
		if !regexp.MustCompile(`\.(go|c|cpp|h|cu|cuh)$`).MatchString(path) || path == "../docs/operator_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && updates(string(text)) != "" {
			found = append(found, strings.TrimPrefix(path, "../"))
		}
		if err == nil && strings.Contains(path, "/generate/") && neighbours(string(text)) != "" {
			t.Errorf("%s: %q adds neighbours without package operator", path, neighbours(string(text)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	if !slices.Equal(found, operatorFiles) {
		t.Errorf("the update of a point is computed in\n%s\nand should be in\n%s", strings.Join(found, "\n"),
			strings.Join(operatorFiles, "\n"))
	}
}

func errorOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

var (
	comments = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	ends     = regexp.MustCompile(`([^-+*/,(&|=\s\\])\s*\n`) // of lines that the next one does not continue
	space    = regexp.MustCompile(`\s+`)

	// Opposite neighbours are added: by name, or as values beside a place.
	opposite = regexp.MustCompile(`\bwest\b[^,;:{}]*\+[^,;:{}]*\beast\b|\bnorth\b[^,;:{}]*\+[^,;:{}]*\bsouth\b`)
	beside   = regexp.MustCompile(`\[([^][,;]*)-1\]\+\w*\[([^][,;]*)\+1\]`)
	// fma(h, fma(q, t - s, s), b)
	nested = regexp.MustCompile(`(?i)(?:fma|fused)(?:_rn|f)?\([^,;]+,[\w.]*(?:fma|fused)(?:_rn|f)?\(` +
		`[^,;]+,(?:\w+\.round\()?[\w.\]\[]+-([\w.\]\[]+)\)?,([\w.\]\[]+)\)`)
	// fma(w, west, fma(e, east, fma(n, north, fma(s, south, b))))
	chain   = regexp.MustCompile(`(?i)(?:(?:fma|fused)(?:_rn|f)?\([^,;()]+,[^,;()]+,[\w.]*){3}(?:fma|fused)`)
	average = regexp.MustCompile(`(?i)(?:0?\.25f?|quarter)\)?\*\w*\(+[^,;:]*\+[^,;:]*\+`)

	// In generators: vectors of rows above and below, or values shifted by one, are added or loaded to be added.
	shifted = regexp.MustCompile(`(?i)(?:plus|vaddp[sd]|add)\([^;]*(?:\bs\[j\],n\[j\]|at\([\w.]+,-?1\))|\.load\(\w+,1,`)
)

// code returns source text without comments and space, and a semicolon between statements.
func code(text string) string {
	text = comments.ReplaceAllString(text, "")
	return space.ReplaceAllString(ends.ReplaceAllString(text, "$1;"), "")
}

// updates returns the first expression that computes the update of a point.
func updates(text string) string {
	text = code(text)
	for _, r := range []*regexp.Regexp{opposite, average, chain} {
		if s := r.FindString(text); s != "" {
			return s
		}
	}
	for _, r := range []*regexp.Regexp{beside, nested} {
		for _, m := range r.FindAllStringSubmatch(text, -1) {
			if m[1] == m[2] {
				return m[0]
			}
		}
	}
	return ""
}

// neighbours returns the first instruction of a generator that adds neighbours.
func neighbours(text string) string { return shifted.FindString(code(text)) }

// Copies in other words are found, too: each of these stood in the tree.
func TestCopiesOfTheOperatorAreFound(t *testing.T) {
	for _, text := range []string{
		"return Real(0.25) * ((west + east) + (north + south));",
		"float v = 0.25f * ((c[x - 1] + c[x + 1]) + (n[x] + s[x]));",
		"n[x] = 0.25 * float64((o[x-1]+o[x+1])+(old[y-1][x]+old[y+1][x]))",
		"const Real s = (j ? u.v[j - 1] : west) + (j < W - 1 ? u.v[j + 1] : east), t = north.v[j] + south.v[j];",
		"const float s = from[around[k].west] + from[around[k].east];",
		"d.v[j] = fused(h, fused(q, t - s, s), b.v[j]) - u.v[j];",
		"kernel.FMA(s.h, kernel.FMA(s.q, t-sum, sum), b) - s.centre[x]",
		"j.fma(j.op.Scale,\n\tj.fma(j.op.Blend, j.round(t-s), s), b)",
		"a.fma(v[1], west, a.fma(v[2], east,\n\ta.fma(v[3], north, a.fma(v[4], south, b))))",
		"d = fused(w.w, left, fused(w.e, right, fused(w.n, up, fused(w.s, down, b))));",
	} {
		if updates(text) == "" {
			t.Errorf("not found: %s", text)
		}
	}
	for _, text := range []string{"g.plus(g.at(r.u, 1), s, s)", "g.load(u, 1, c)\ng.each(g.Add, c, s, s)",
		"m.Add(m.t, s[j], n[j], n[j])"} {
		if neighbours(text) == "" {
			t.Errorf("not found in a generator: %s", text)
		}
	}
	for _, text := range []string{
		"const double t = fused((double)row.weight, w[1] - w[0], w[0]);", // an interpolation
		"t.around = append(t.around, around{row + west, row + east, north + int32(x), south + int32(x)})",
	} {
		if s := updates(text); s != "" {
			t.Errorf("%q is not the operator", s)
		}
	}
}
