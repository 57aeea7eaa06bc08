package view

import (
	"os"
	"strings"
	"testing"
)

// A file that does not hold a whole field is refused.
func TestFieldsThatAreRefused(t *testing.T) {
	npy, vti := field("a.npy", 5, 3), field("a.vti", 5, 3)
	with := func(old, new string) string { return strings.ReplaceAll(vti, old, new) }
	const step = `"0.25 0.5 1"`
	for _, c := range []struct{ name, data, want string }{
		{"a.npy", "junk", "not a .npy file"},
		{"a.npy", npy[:200], "truncated: 200 bytes; it must have 5 x 3 values of float64 from byte 128 on"},
		{"a.vti", vti[:1100], "truncated: 1100 bytes; it must have 5 x 3 values of float64 from byte 1024 on"},
		{"a.vti", "<VTKFile>", "no raw appended data; it must be a .vti file as the launcher writes it"},
		{"a.vti", with("UInt64", "UInt32"), "it must be a flat ImageData of one piece with an array, " +
			"little-endian, with a UInt64 header, without compression"},
		{"a.vti", with("<Piece", "<Peace"), "its XML: XML syntax error on line 8: element <Peace> closed by </Piece>"},
		{"a.vti", with(step, `"Inf Inf 1"`), "spacings +Inf and +Inf: must be above 0 and give the mesh finite sides"},
		{"a.vti", with(step, `"0.25 NaN 1"`), "spacings 0.25 and NaN: must be above 0 and give the mesh finite sides"},
		{"a.vti", with(step, `"1e308 1 1"`), "spacings 1e+308 and 1: must be above 0 and give the mesh finite sides"},
		{"a.vti", with(step, `"-1 1 1"`), "spacings -1 and 1: must be above 0 and give the mesh finite sides"},
		{"a.vti", with(step, `"0 1 1"`), "spacings 0 and 1: must be above 0"},
		{"a.vti", with("0 4 0 2 0 0", "0 4 0 -2 0 0"), "a mesh of 5 x -1; sides must have 2 to 2147483647 points"},
	} {
		t.Chdir(t.TempDir())
		if err := os.WriteFile(c.name, []byte(c.data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openField(c.name); err == nil || err.Error() != c.name+": "+c.want {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
	}
}
